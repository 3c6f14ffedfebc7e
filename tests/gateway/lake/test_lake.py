import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.lake import lake as lake_module
from gateway.lake.collector import collect
from gateway.lake.lake import Lake
from spark.errors import LakeBusy, LakeDamaged
from spark.layout import EVENTS, stream_dir
from spark.schema import arrow_schema
from tests.gateway.outboxes import NOW_MS, STREAM, messages, verify


def fill(root: Path, count: int, batch: int = 10) -> Lake:
    lake = Lake(root)
    outbox = messages(count, batch)
    pages = outbox.pages
    for upto in range(1, len(pages) + 1):  # one file a page
        outbox.pages = pages[:upto]
        collect(
            outbox,
            lake,
            STREAM,
            verify,
            now_ms=NOW_MS,
            progress=lambda _: None,
        )
    return lake


def paths(lake: Lake) -> list[Path]:
    return sorted((lake.root / EVENTS / stream_dir(STREAM.node, STREAM.epoch)).glob("*.parquet"))


def problems(lake: Lake, key=verify) -> list[str]:
    return [fault.problem for fault in lake.verify(lambda _: key).faults]


def test_an_empty_lake_begins_at_the_genesis(tmp_path):
    lake = Lake(tmp_path / "lake")
    assert lake.cursor(STREAM.mesh, STREAM.node) is None
    assert lake.verify(lambda _: verify).files == 0


def test_a_sound_lake_verifies_and_its_files_have_the_schema(tmp_path):
    lake = fill(tmp_path, 25)
    verified = lake.verify(lambda _: verify)
    assert (verified.files, verified.rows, verified.faults) == (3, 25, ())
    assert all(pq.read_schema(path).equals(arrow_schema()) for path in paths(lake))
    assert [path.name for path in paths(lake)] == [
        "seq-000000000001-000000000010.parquet",
        "seq-000000000011-000000000020.parquet",
        "seq-000000000021-000000000025.parquet",
    ]


def test_verify_finds_a_flipped_bit(tmp_path):
    lake = fill(tmp_path, 10)
    (path,) = paths(lake)
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 1
    path.write_bytes(content)
    assert len(problems(lake)) == 1


def test_verify_finds_a_missing_file_a_renamed_file_and_a_truncated_one(tmp_path):
    lake = fill(tmp_path, 40)
    _, second, third, fourth = paths(lake)
    second.unlink()
    third.rename(third.with_name("seq-000000000021-000000000031.parquet"))
    os.truncate(fourth, 100)
    found = "\n".join(problems(lake))
    assert "its rows are not the entries that its name promises" in found
    assert len(problems(lake)) == 2  # the gap shows once the renamed file is repaired
    third.with_name("seq-000000000021-000000000031.parquet").rename(third)
    assert "entries 11 to 20 are missing before it" in "\n".join(problems(lake))
    with pytest.raises(LakeDamaged, match="cannot be read"):
        lake.cursor(STREAM.mesh, STREAM.node)


def test_verify_finds_a_file_of_another_stream_and_a_signature_of_another_key(tmp_path):
    lake = fill(tmp_path, 10)
    (path,) = paths(lake)
    assert problems(lake, key=None) == []
    assert problems(lake, key=lambda *_: False) == [
        f"the checkpoint of {STREAM.node} is not signed by its key"
    ]
    elsewhere = lake.root / EVENTS / stream_dir("other", STREAM.epoch)
    elsewhere.mkdir(parents=True)
    path.rename(elsewhere / path.name)
    assert problems(lake) == ["it holds another stream than its directory says"]


def test_a_cursor_is_not_taken_from_a_file_of_another_place(tmp_path):
    lake = fill(tmp_path, 10)
    (path,) = paths(lake)
    path.rename(path.with_name("seq-000000000001-000000000011.parquet"))
    with pytest.raises(LakeDamaged, match="another stream or place") as caught:
        lake.cursor(STREAM.mesh, STREAM.node)
    assert "move the file away" in caught.value.hint


def test_one_writer_at_a_time(tmp_path):
    lake = Lake(tmp_path)
    with lake.lock(), pytest.raises(LakeBusy), Lake(tmp_path).lock():
        pass
    with lake.lock():
        pass


def test_files_of_an_older_version_lack_optional_columns_and_are_sound(tmp_path):
    lake = fill(tmp_path, 10)
    (path,) = paths(lake)
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.drop_columns(["etaAt", "digest"]), path)
    assert problems(lake) == []
    pq.write_table(table.drop_columns(["seq"]), path)
    assert problems(lake) == ["it has other columns than this version knows"]


def test_files_that_all_lack_a_column_of_now_are_compacted_and_read(tmp_path):
    lake = fill(tmp_path, 20)
    for path in paths(lake):
        table = pq.read_table(path, partitioning=None)
        pq.write_table(table.drop_columns(["signal", "untilAt", "isOver", "etaAt"]), path)
    assert lake.compact(lake.streams()[0]).written == 1
    (path,) = paths(lake)
    assert pq.read_schema(path).equals(arrow_schema())
    assert lake.verify(lambda _: verify).faults == ()


def test_compacting_writes_one_file_in_place_of_many_and_the_cursor_stays(tmp_path):
    lake = fill(tmp_path, 95)
    before = lake.cursor(STREAM.mesh, STREAM.node)
    assert lake.streams() == [(STREAM.node, STREAM.epoch)]
    done = lake.compact(lake.streams()[0])
    assert (done.written, done.removed) == (1, 10)
    assert [path.name for path in paths(lake)] == ["seq-000000000001-000000000095.parquet"]
    assert lake.cursor(STREAM.mesh, STREAM.node) == before
    assert lake.verify(lambda _: verify).faults == ()
    again = lake.compact(lake.streams()[0])
    assert (again.written, again.removed) == (0, 0)


def test_compacting_takes_overlapping_files_once_and_hides_no_hole(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_module, "COMPACT_ROWS_MAX", 40)
    lake = fill(tmp_path, 95)
    first, second, *_, seventh, _, _, _ = paths(lake)
    seventh.unlink()
    both = pa.concat_tables([pq.read_table(path, partitioning=None) for path in (first, second)])
    wide = both.slice(5).replace_schema_metadata(pq.read_schema(second).metadata)
    pq.write_table(wide, second.with_name("seq-000000000006-000000000020.parquet"))
    lake.compact(lake.streams()[0])
    assert [path.name for path in paths(lake)] == [
        "seq-000000000001-000000000040.parquet",
        "seq-000000000041-000000000060.parquet",
        "seq-000000000071-000000000095.parquet",
    ]
    assert problems(lake) == ["entries 61 to 70 are missing before it"]


def test_a_damaged_part_is_not_compacted(tmp_path):
    lake = fill(tmp_path, 30)
    _, second, _ = paths(lake)
    os.truncate(second, 100)
    with pytest.raises(LakeDamaged, match="cannot be read"):
        lake.compact(lake.streams()[0])
    assert len(paths(lake)) == 3
