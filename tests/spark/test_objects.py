from pathlib import Path, PurePosixPath

import pytest

from spark.errors import InvalidLake, SparkFailed
from spark.job import spark_errors
from spark.objects import ObjectPath, lake_path, matching, size_of, spark_name


def test_a_directory_is_a_path_and_an_address_is_an_object_store():
    assert lake_path("lake") == Path("lake")
    found = lake_path("s3://bucket/a/lake?endpoint_override=127.0.0.1:1&scheme=http")
    assert isinstance(found, ObjectPath)
    assert (str(found), spark_name(found)) == ("s3://bucket/a/lake", "s3a://bucket/a/lake")
    assert str((found / "events/v=1").parent / "x.parquet") == "s3://bucket/a/lake/events/x.parquet"


@pytest.mark.parametrize(
    "address",
    [
        "ftp://host/lake",
        "s3://",
        "s3://key:secret@bucket/lake",
        "s3://bucket/lake?secret_key=secret",
        "s3://bucket/lake?no_such_option=1",
    ],
)
def test_what_is_no_lake_is_refused_without_telling_secrets(address):
    with pytest.raises(InvalidLake) as refused:
        lake_path(address)
    assert "secret@" not in f"{refused.value}{refused.value.hint}"
    assert "=secret" not in f"{refused.value}{refused.value.hint}"


def test_names_are_matched_level_by_level_as_in_a_directory(tmp_path):
    fs = pytest.importorskip("pyarrow.fs")
    files = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for name in (
        "b/epoch=2/seq-1.parquet",
        "b/epoch=10/seq-2.parquet",
        "b-2/epoch=1/seq-3.json",
        "b/note.parquet",
    ):
        (tmp_path / "bucket" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bucket" / name).write_text(name)
    root = ObjectPath(files, PurePosixPath("bucket"))
    for pattern in ("*", "*/epoch=*", "*/epoch=*/seq-*.parquet", "b/*", "none/*"):
        here, there = matching(tmp_path / "bucket", pattern), matching(root, pattern)
        assert [path.parts[-3:] for path in there] == [
            PurePosixPath("bucket", *path.relative_to(tmp_path / "bucket").parts).parts[-3:] for path in here
        ]
    (found,) = matching(root, "b-2/*/*")
    assert (found.read_bytes(), found.name) == (b"b-2/epoch=1/seq-3.json", "seq-3.json")
    assert size_of(found) == size_of(ObjectPath(files, PurePosixPath(str(found)[len("s3://") :]))) == 22
    found.unlink()
    assert matching(root, "b-2/*/*") == []


def test_a_spark_without_jars_for_object_stores_says_how_to_have_them(spark, tmp_path):
    with pytest.raises(SparkFailed) as failed, spark_errors(tmp_path / "log"):
        spark.read.parquet("s3a://bucket/lake").count()
    assert "hadoop-aws" in failed.value.hint
