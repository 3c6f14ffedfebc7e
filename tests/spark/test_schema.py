import msgspec
import pyarrow as pa
import pytest

from spark.schema import COLUMNS, ColumnType, EventRow, Flag, arrow_schema, spark_schema


def test_both_schemas_have_the_columns_in_order():
    names = [column.name for column in COLUMNS]
    assert names == list(EventRow.__struct_encode_fields__)
    assert arrow_schema().names == names
    pytest.importorskip("pyspark", reason="the spark extra is not installed")
    assert spark_schema().names == names


def test_times_are_microseconds_in_utc_and_places_are_required():
    types = {column.name: column.type for column in COLUMNS}
    times = {name for name, kind in types.items() if kind is ColumnType.TIMESTAMP}
    assert times == {"createdAt", "expiresAt", "engagedAt", "etaAt", "untilAt"}
    assert all(arrow_schema().field(name).type == pa.timestamp("us", tz="UTC") for name in times)
    required = {column.name for column in COLUMNS if not column.nullable}
    assert required == {"sourceNodeId", "epoch", "seq", "bytes"}


def test_a_row_goes_into_the_table_and_comes_out():
    row = EventRow(source_node_id="007", epoch="e", seq=9, bytes=1, created_at=5, flags=Flag.CREATED_AT)
    (back,) = pa.Table.from_pylist([msgspec.to_builtins(row)], schema=arrow_schema()).to_pylist()
    assert (back["sourceNodeId"], back["seq"], back["flags"]) == ("007", 9, "created_at")
    assert back["createdAt"].microsecond == 5
