"""A node that signed two histories of its outbox: both are kept, and reports show the fork."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.lake.lake import Lake
from outbox.errors import BrokenChain, StreamForked
from spark.layout import FORKS
from spark.sources import event_files
from tests.gateway.lake import journals
from tests.gateway.lake.test_collector import rows, run
from tests.gateway.outboxes import STREAM, entry, message, messages


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, Path]:
    return journals.forked(tmp_path)


def seqs(lake: Lake, table: str) -> list[int]:
    return [row["seq"] for row in rows(lake, table)]


@pytest.mark.parametrize("often", [1, 3])
def test_both_histories_are_kept_from_where_they_differ(tmp_path, copies, often):
    lake = Lake(tmp_path / "lake")
    for _ in range(often):
        journals.collect_own(copies[0], lake)
        with pytest.raises(StreamForked, match="from entry 21 on") as caught:
            journals.collect_own(copies[1], lake)
        assert "reports show the fork" in caught.value.hint
    assert seqs(lake, "events/v=1") == list(range(1, 36))
    assert seqs(lake, FORKS)[0] == 21
    assert seqs(lake, FORKS)[-1] > 35
    (found,) = event_files(lake.root).copies
    assert (found.node, found.places[0].first, found.places[-1].last) == (STREAM.node, 21, 35)


def test_a_copy_that_is_only_behind_and_a_stream_that_is_only_broken_are_no_forks(tmp_path, copies):
    lake = Lake(tmp_path / "lake")
    run(messages(30), lake)
    unsigned = messages(30)
    unsigned.pages = unsigned.pages[:1]
    assert run(unsigned, lake).rows == 0
    other = messages(40)
    other.pages[3] = other.pages[3].__class__(
        STREAM.epoch, (entry(31, message(99)), *other.pages[3].entries[1:]), other.pages[3].checkpoint
    )
    with pytest.raises(BrokenChain):
        run(other, lake)
    assert not (lake.root / FORKS).exists()
    assert pq.read_table(next(lake.root.rglob("*.parquet")), partitioning=None).num_rows == 30
