from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import StorageFailed
from outbox.kinds import Outcome
from outbox.tables import (
    DELIVERIES,
    DOUBTS,
    QUARANTINED,
    RECEIVED,
    ROWS_PER_STATEMENT,
    Cursor,
    insert,
    portions,
)


@given(st.integers(0, 5000))
def test_portions_are_all_rows_in_few_sizes(rows: int) -> None:
    written = list(portions([(row, str(row)) for row in range(rows)]))
    assert [value for _, values in written for value in values] == [
        x for row in range(rows) for x in (row, str(row))
    ]
    assert all(len(values) == 2 * size for size, values in written)
    assert {size for size, _ in written} <= set(ROWS_PER_STATEMENT)
    sizes = [size for size, _ in written]
    assert sizes == sorted(sizes, reverse=True)


def test_a_record_survives_its_row(world: Any) -> None:
    row = world.delivery(7, outcome=Outcome.FAILED, error="boom", node=None)
    values = DELIVERIES.encode(row)
    assert values[0] == bytes(15) + b"\x07"
    assert DELIVERIES.decode(values) == row
    assert RECEIVED.decode(RECEIVED.encode(world.received(3))) == world.received(3)


def test_keys_are_those_of_the_rows(world: Any) -> None:
    row = world.delivery(7)
    assert DELIVERIES.key_of(row) == (row.event_id, row.node)
    assert DELIVERIES.encode_key((row.event_id, None)) == (DELIVERIES.encode(row)[0], "")
    assert QUARANTINED.key == ("source", "epoch", "seq")
    assert QUARANTINED.encode_key(("mbp", "000001-0123456789ab", 4)) == ("mbp", "000001-0123456789ab", 4)


@pytest.mark.parametrize(
    ("column", "value"), [("state", "lost"), ("attempt", "one"), ("event_id", 7), ("kind", None)]
)
def test_a_damaged_row_is_a_storage_failure(world: Any, column: str, value: Any) -> None:
    values = list(DELIVERIES.encode(world.delivery(7)))
    values[DELIVERIES.columns.index(column)] = value
    with pytest.raises(StorageFailed, match="deliveries is damaged"):
        DELIVERIES.decode(tuple(values))


def test_statements() -> None:
    assert insert("t", ("a", "b"), 2) == 'INSERT OR ROLLBACK INTO t ("a", "b") VALUES (?, ?), (?, ?)'
    assert DOUBTS.select_key() == 'SELECT "source", "epoch" FROM doubts WHERE "source" = ?'
    changed = '"epoch" = excluded."epoch"'
    assert DOUBTS.upsert(1).endswith(f' ON CONFLICT ("source") DO UPDATE SET {changed}')


def test_a_cursor_row_is_a_head() -> None:
    row = msgspec.convert(["mbp", "000001-0123456789ab", 4, b"h"], Cursor)
    assert (row.head.epoch, row.head.seq, row.head.hash) == (row.epoch, 4, b"h")
