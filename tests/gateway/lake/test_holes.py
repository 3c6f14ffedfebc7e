"""What a trimmed copy lacked is asked for again: who has it fills the hole, or its writer signs it away."""

from contextlib import closing

import pytest

from gateway.lake.holes import holes
from gateway.lake.lake import Lake
from outbox.errors import StreamForked
from outbox.ids import NodeId
from outbox.journal import Journal
from outbox.limits import PAGE_BYTES_MAX
from spark.sources import event_files
from tests.gateway.lake import journals
from tests.gateway.lake.journals import SECOND
from tests.gateway.outboxes import NOW_MS, STREAM, verify


@pytest.fixture
def home(tmp_path):
    """A writer's home with 30 entries."""
    with closing(journals.make(tmp_path / "home.db")) as journal:
        journals.write(journal, 6)
    return tmp_path / "home.db"


def trimmed(home, path, batches):
    """A peer's home whose copy has let go of the first batches."""
    with (
        closing(journals.make(path, NodeId("seed"))) as seed,
        closing(Journal.open(home)) as journal,
    ):
        seed.begin()
        head = journal.genesis()
        while (page := journal.read(head, 1, PAGE_BYTES_MAX)) is not None:
            seed.extend_copy(STREAM.node, page, NOW_MS)
            head = page.checkpoint.head
        seed.trim_copy(seed.copies()[0], batches)
        seed.commit()
    return path


@pytest.fixture
def lake(home, tmp_path):
    """One that has read a trimmed copy first, from entry 16 on."""
    lake = Lake(tmp_path / "lake")
    journals.collect_copy(trimmed(home, tmp_path / "late.db", 2), lake)
    assert missing(lake) == [(0, 15)]
    return lake


def missing(lake):
    return [(hole.after.seq, hole.last) for hole in holes(lake, STREAM.mesh, STREAM.node)]


def seqs(lake):
    return {seq for span in lake.held(STREAM.node)[STREAM.epoch] for seq in range(span.first, span.last + 1)}


def problems(lake):
    return [fault.problem for fault in lake.verify(lambda _: verify).faults]


def test_its_writer_has_what_a_peer_had_let_go_of(home, lake):
    done = journals.collect_own(home, lake)
    assert (done.rows, done.head.seq) == (15, 30)
    assert (seqs(lake), missing(lake), problems(lake)) == (set(range(1, 31)), [], [])
    assert journals.collect_own(home, lake).rows == 0


def test_another_copy_may_have_some_of_it(home, lake, tmp_path):
    journals.collect_copy(trimmed(home, tmp_path / "earlier.db", 1), lake)
    assert (missing(lake), seqs(lake)) == ([(0, 10)], set(range(11, 31)))
    assert journals.collect_copy(tmp_path / "earlier.db", lake).rows == 0
    assert journals.collect_own(home, lake).rows == 10
    assert (seqs(lake), problems(lake)) == (set(range(1, 31)), [])


@pytest.mark.parametrize(("floor", "gone"), [(5, 5), (15, 15), (25, 15)])
def test_its_writer_signs_away_what_it_has_forgotten(home, lake, floor, gone):
    with closing(Journal.open(home)) as journal:
        journals.forget(journal, floor)
    journals.collect_own(home, lake)
    (found,) = event_files(lake.root).forgotten
    assert (found.places, missing(lake), problems(lake)) == (((1, gone),), [], [])
    assert seqs(lake) == set(range(gone + 1, 31))
    assert journals.collect_own(home, lake).rows == 0


def test_a_hole_of_an_epoch_that_ended_is_filled_too(home, lake):
    with closing(Journal.open(home)) as journal:
        journals.go_on(journal)
        journals.write(journal, 2)
    assert journals.collect_own(home, lake).rows == 10, (
        "what follows, as of old: nobody was asked for earlier"
    )
    from tests.gateway.lake.test_earlier import bring

    done = bring(lake, home)
    assert (done.rows, done.head.epoch, missing(lake)) == (15, SECOND, [])
    assert problems(lake) == []


def test_a_hole_in_the_middle_begins_where_the_file_before_it_ends(home, lake):
    journals.collect_own(home, lake)
    with closing(Journal.open(home)) as journal:
        for _ in range(2):
            journals.write(journal, 2)
            journals.collect_own(home, lake)
    (second,) = lake.root.rglob("seq-000000000031-*.parquet")
    second.unlink()
    assert missing(lake) == [(30, 40)]
    assert journals.collect_own(home, lake).rows == 10
    assert (missing(lake), seqs(lake)) == ([], set(range(1, 51)))


def test_another_history_does_not_fill_a_hole(tmp_path):
    (tmp_path / "two").mkdir()
    one, other = journals.forked(tmp_path / "two")
    lake = Lake(tmp_path / "lake")
    journals.collect_copy(trimmed(one, tmp_path / "late.db", 4), lake)
    with pytest.raises(StreamForked):
        journals.collect_own(other, lake)
    assert (missing(lake), seqs(lake)) == ([(0, 25)], set(range(26, 36)))
