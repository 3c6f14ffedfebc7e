"""Outboxes that forgot, and outboxes of several epochs: what is missing is told apart from what is gone."""

from contextlib import closing

import pytest

from gateway.lake.lake import Lake
from outbox.errors import BadCheckpoint
from outbox.ids import NodeId
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from spark.layout import EVENTS
from spark.sources import event_files
from spark.spans import Span
from tests.gateway.lake import journals
from tests.gateway.lake.journals import SECOND
from tests.gateway.outboxes import NOW_MS, STREAM, verify


def files(lake: Lake) -> dict[str, list[str]]:
    root = lake.root / EVENTS
    return {
        directory.name: sorted(path.name for path in directory.iterdir())
        for directory in sorted(root.glob("*/epoch=*"))
    }


def forgotten(lake: Lake) -> list[tuple[str, tuple[Span, ...]]]:
    return [(found.epoch, found.places) for found in event_files(lake.root).forgotten]


def problems(lake: Lake) -> list[str]:
    return [fault.problem for fault in lake.verify(lambda _: verify).faults]


def test_each_epoch_is_collected_into_files_of_its_own(tmp_path):
    lake = Lake(tmp_path / "lake")
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 2)
        journals.go_on(journal)
        journals.write(journal, 3)
        done = journals.collect_own(tmp_path / "j", lake)
        assert (done.rows, done.files, done.head) == (25, 2, journal.head())
        journals.write(journal, 1)
        assert journals.collect_own(tmp_path / "j", lake).rows == 5
    assert files(lake) == {
        f"epoch={STREAM.epoch}": ["seq-000000000001-000000000010.parquet"],
        f"epoch={SECOND}": [
            "seq-000000000001-000000000015.parquet",
            "seq-000000000016-000000000020.parquet",
        ],
    }
    assert (problems(lake), forgotten(lake)) == ([], [])


@pytest.mark.parametrize("collected", [0, 5, 10])
def test_what_was_forgotten_before_it_was_collected_is_noted_and_is_no_hole(tmp_path, collected):
    lake = Lake(tmp_path / "lake")
    with closing(journals.make(tmp_path / "j")) as journal:
        if collected:
            journals.write(journal, collected // 5)
            journals.collect_own(tmp_path / "j", lake)
        journals.write(journal, 6 - collected // 5)
        journals.forget(journal, 20)
        done = journals.collect_own(tmp_path / "j", lake)
        assert (done.rows, done.head) == (10, journal.head())
    assert forgotten(lake) == [(STREAM.epoch, (Span(collected + 1, 20),))]
    assert problems(lake) == []
    assert journals.collect_own(tmp_path / "j", lake).rows == 0


def test_a_floor_in_a_later_epoch_is_noted_there(tmp_path):
    lake = Lake(tmp_path / "lake")
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 2)
        journals.collect_own(tmp_path / "j", lake)
        journals.go_on(journal)
        journals.write(journal, 4)
        journals.forget(journal, 10, SECOND)
        assert journals.collect_own(tmp_path / "j", lake).rows == 10
    assert forgotten(lake) == [(SECOND, (Span(1, 10),))]
    assert problems(lake) == []


def test_a_forged_floor_forgets_nothing(tmp_path, monkeypatch):
    lake = Lake(tmp_path / "lake")
    with closing(journals.make(tmp_path / "j")) as journal:
        journals.write(journal, 4)
        journals.forget(journal, 10)
    monkeypatch.setattr(journals, "verify", lambda _, text: b"\x0010\x00" not in text)
    with pytest.raises(BadCheckpoint):
        journals.collect_own(tmp_path / "j", lake)
    assert not list(tmp_path.rglob("seq-*"))


def test_a_copy_that_begins_later_goes_on_at_its_first_checkpoint_and_the_hole_shows(tmp_path):
    """It may be that a relay withholds what came before: only the writer's own word explains a hole."""
    lake = Lake(tmp_path / "lake")
    with (
        closing(journals.make(tmp_path / "seed", NodeId("seed"))) as seed,
        closing(journals.make(tmp_path / "j")) as journal,
    ):
        journals.write(journal, 6)
        seed.begin()
        head = journal.genesis()
        while (page := journal.read(head, 1, PAGE_BYTES_MAX)) is not None:
            seed.extend_copy(STREAM.node, page, NOW_MS)
            head = page.checkpoint.head
        assert journal.read(journal.genesis(), PAGE_ENTRIES_MAX, PAGE_BYTES_MAX) is not None
        seed.trim_copy(seed.copies()[0], 2)
        seed.commit()
    done = journals.collect_copy(tmp_path / "seed", lake)
    assert (done.rows, done.head.seq) == (15, 30)
    assert problems(lake) == ["entries 1 to 15 are missing before it"]
    assert forgotten(lake) == []
    assert journals.collect_copy(tmp_path / "seed", lake).rows == 0
