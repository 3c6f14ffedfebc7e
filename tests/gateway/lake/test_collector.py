import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from gateway.lake import collector
from gateway.lake.collector import collect
from gateway.lake.lake import Lake
from outbox.chain import Entry, sign_checkpoint
from outbox.errors import BadCheckpoint, BrokenChain, StreamForked
from spark.layout import EVENTS, QUARANTINE, covering, stream_dir
from tests.gateway.outboxes import KEY, NOW_MS, STREAM, Outbox, entry, message, messages, verify


def run(outbox: Outbox, lake: Lake, progress=lambda _: None):
    return collect(outbox, lake, STREAM, verify, now_ms=NOW_MS, progress=progress)


def rows(lake: Lake, table: str = EVENTS) -> list[dict]:
    directory = lake.root / table / stream_dir(STREAM.node, STREAM.epoch)
    spans = covering(path.name for path in directory.glob("*"))
    return [
        row
        for span in spans
        for row in pq.read_table(directory / span.file_name, partitioning=None).to_pylist()
    ]


def test_brings_the_lake_to_the_end_and_a_second_run_adds_nothing(tmp_path):
    outbox, lake, seen = messages(25), Lake(tmp_path), []
    first = run(outbox, lake, seen.append)
    assert (first.rows, first.files, first.flagged, first.quarantined) == (25, 1, 0, 0)
    assert first.head == outbox.head == lake.cursor(STREAM.mesh, STREAM.node)
    assert seen == [25]
    again = run(outbox, lake, seen.append)
    assert (again.rows, again.files, again.head) == (0, 0, outbox.head)
    outbox.append((entry(26, message(26)),))
    assert run(outbox, lake).rows == 1
    assert [row["seq"] for row in rows(lake)] == list(range(1, 27))


def test_a_full_file_is_closed_and_the_next_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "FILE_ROWS_MAX", 20)
    outbox, lake, seen = messages(65), Lake(tmp_path), []
    assert run(outbox, lake, seen.append).files == 4
    assert seen == [20, 40, 60, 65]
    assert [row["seq"] for row in rows(lake)] == list(range(1, 66))


def test_what_is_no_event_is_kept_aside_and_leaves_no_hole(tmp_path):
    good = entry(1, message(1))
    outbox = Outbox([good, Entry(2, b"{}", b"\x00junk"), entry(3, message(3, kind="task_dance"))])
    done = run(outbox, Lake(tmp_path))
    assert (done.rows, done.flagged, done.quarantined) == (3, 2, 1)
    assert [row["flags"] for row in rows(Lake(tmp_path))] == [None, "not_an_event", "unknown_kind"]
    (aside,) = rows(Lake(tmp_path), QUARANTINE)
    assert (aside["seq"], aside["header"], aside["body"]) == (2, b"{}", b"\x00junk")


def broken_pages():
    changed = messages(30)
    first = changed.pages[1].entries[0]
    entries = (Entry(first.seq, first.header, first.body + b" "), *changed.pages[1].entries[1:])
    changed.pages[1] = msgspec.structs.replace(changed.pages[1], entries=entries)
    yield changed, BrokenChain
    shortened = messages(30)
    shortened.pages[1] = msgspec.structs.replace(shortened.pages[1], entries=shortened.pages[1].entries[:-1])
    yield shortened, BrokenChain
    unsigned = messages(30)
    checkpoint = msgspec.structs.replace(unsigned.pages[1].checkpoint, signature=b"\x00" * 64)
    unsigned.pages[1] = msgspec.structs.replace(unsigned.pages[1], checkpoint=checkpoint)
    yield unsigned, BadCheckpoint
    foreign = messages(30)
    checkpoint = sign_checkpoint(STREAM.mesh, "lab", foreign.pages[1].checkpoint.head, KEY.sign)
    foreign.pages[1] = msgspec.structs.replace(foreign.pages[1], checkpoint=checkpoint)
    yield foreign, BadCheckpoint


@pytest.mark.parametrize(("outbox", "error"), list(broken_pages()))
def test_a_broken_stream_is_refused_from_the_break_on(tmp_path, outbox, error):
    for _ in range(2):
        with pytest.raises(error):
            run(outbox, Lake(tmp_path))
        assert [row["seq"] for row in rows(Lake(tmp_path))] == list(range(1, 11))


def test_a_stream_that_forgot_what_was_collected_is_refused(tmp_path):
    run(messages(10), Lake(tmp_path))
    other = Outbox([entry(seq, message(seq + 100)) for seq in range(1, 21)])
    with pytest.raises(StreamForked):
        run(other, Lake(tmp_path))
    assert len(rows(Lake(tmp_path))) == 10


@pytest.mark.parametrize("point", ["collect_after_tmp", "collect_after_rename"])
def test_killed_at_its_named_crash_points(tmp_path, point):
    code = (
        "import sys; from pathlib import Path; from gateway.lake.lake import Lake;"
        "from tests.gateway.lake.test_collector import run; from tests.gateway.outboxes import messages;"
        "run(messages(10), Lake(Path(sys.argv[1])))"
    )
    died = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        env=os.environ | {"GATEWAY_CRASHPOINT": point},
        timeout=60,
        cwd=Path.cwd(),
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert run(messages(10), Lake(tmp_path)).head.seq == 10
    assert [row["seq"] for row in rows(Lake(tmp_path))] == list(range(1, 11))
