import msgspec
import pytest

from gateway.lake.lake import Lake
from outbox.errors import StreamForked
from spark.forks import forked, forks
from spark.layout import EVENTS, FORKS, proof_name, stream_dir
from spark.sources import event_files, read_copies
from spark.spans import Span
from tests.gateway.lake import journals
from tests.gateway.outboxes import STREAM
from tests.spark.histories import EPOCH, history
from tests.spark.reporting import one, put, put_file

ROWS = history([one()] * 4)
OTHER = [msgspec.structs.replace(row, event_id=f"evt_{row.seq:032x}") for row in ROWS]


def found(spark, lake):
    files = event_files(lake)
    return forks(read_copies(spark, files), files.proofs)


def prove(lake, node, seq):
    path = lake / FORKS / stream_dir(node, EPOCH) / proof_name(seq)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


def test_a_second_copy_that_differs_is_a_fork(spark, tmp_path):
    put(tmp_path, ROWS)
    put_file(tmp_path / FORKS / stream_dir("a", EPOCH) / Span(5, 7).file_name, [ROWS[4], *OTHER[5:7]])
    (fork,) = found(spark, tmp_path).collect()
    assert (fork.node, fork.epoch, fork.first, fork.last, fork.entries) == ("a", EPOCH, 6, 7, 2)
    (subject,) = forked(found(spark, tmp_path)).collect()
    assert (subject.subject, subject.evidence) == (f"a/{EPOCH}", [f"a/{EPOCH}/6"])


def test_files_that_overlap_and_agree_are_none(spark, tmp_path):
    directory = tmp_path / EVENTS / stream_dir("a", EPOCH)
    put_file(directory / Span(1, 8).file_name, ROWS[:8])
    put_file(directory / Span(6, 12).file_name, ROWS[5:])
    assert read_copies(spark, event_files(tmp_path)).count() == 2 * 3
    assert found(spark, tmp_path).collect() == []


def test_an_entry_whose_bytes_differ_is_a_fork_though_its_event_is_the_same(spark, tmp_path):
    put(tmp_path, ROWS)
    changed = msgspec.structs.replace(ROWS[2], digest=7)
    put_file(tmp_path / FORKS / stream_dir("a", EPOCH) / Span(3, 3).file_name, [changed])
    assert [row.entries for row in found(spark, tmp_path).collect()] == [1]


def test_what_only_a_proof_tells_of_is_a_fork_since_the_entry_that_it_is_about(spark, tmp_path):
    directory = tmp_path / EVENTS / stream_dir("a", EPOCH)
    put_file(directory / Span(1, 8).file_name, ROWS[:8])
    put_file(directory / Span(9, 12).file_name, ROWS[8:12])
    prove(tmp_path, "a", 10)
    prove(tmp_path, "gone", 7)
    known, unknown = sorted(found(spark, tmp_path).collect(), key=lambda row: row.node)
    assert (known.node, known.first, known.last, known.entries) == ("a", 10, 10, 0)
    assert known.openedAt is not None
    assert (unknown.node, unknown.first, unknown.entries, unknown.openedAt) == ("gone", 7, 0, None)
    assert [path.name for path in event_files(tmp_path).copies[0].paths] == [Span(9, 12).file_name]
    for subject in forked(found(spark, tmp_path)).collect():
        assert "which differ at" in subject.detail


def test_a_proof_beside_both_histories_adds_nothing_to_them(spark, tmp_path):
    put(tmp_path, ROWS)
    put_file(tmp_path / FORKS / stream_dir("a", EPOCH) / Span(6, 7).file_name, OTHER[5:7])
    prove(tmp_path, "a", 7)
    (fork,) = found(spark, tmp_path).collect()
    assert (fork.first, fork.last, fork.entries) == (6, 7, 2)
    (subject,) = forked(found(spark, tmp_path)).collect()
    assert subject.detail.startswith("2 entries from 6 on")


def test_many_overlaps_are_looked_at_in_one_range(spark, tmp_path):
    many = history([one()] * 120)
    directory = tmp_path / EVENTS / stream_dir("a", EPOCH)
    put_file(directory / Span(1, len(many)).file_name, many)
    for place in range(1, len(many), 6):
        put_file(tmp_path / FORKS / stream_dir("a", EPOCH) / Span(place, place).file_name, [many[place - 1]])
    put_file(tmp_path / FORKS / stream_dir("a", EPOCH) / Span(2, 2).file_name, [OTHER[1]])
    assert [row.first for row in found(spark, tmp_path).collect()] == [2]


def test_a_lake_without_copies_asks_nothing(spark, tmp_path):
    put(tmp_path, ROWS)
    assert event_files(tmp_path).copies == ()
    assert found(spark, tmp_path).collect() == []


def test_what_a_collector_met_of_two_histories_is_a_fork(spark, tmp_path):
    home, copy = journals.forked(tmp_path)
    lake = Lake(tmp_path / "lake")
    journals.collect_own(copy, lake)
    with pytest.raises(StreamForked):
        journals.collect_own(home, lake)
    (found,) = forks(read_copies(spark, event_files(lake.root))).collect()
    assert (found.node, found.epoch, found.first, found.entries) == (STREAM.node, STREAM.epoch, 21, 15)
