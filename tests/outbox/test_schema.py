import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.ids import Seq, make_epoch
from outbox.limits import SEQ_MAX
from outbox.schema import MIGRATIONS, ordinal_of, position, seq_of
from outbox.tables import (
    AGENTS,
    COPIES,
    CURSORS,
    DELIVERIES,
    DOUBTS,
    EPOCHS,
    ERRANDS,
    INCIDENTS,
    LEDGER_FLOORS,
    QUARANTINED,
    RECEIVED,
    REMEMBERED,
    Table,
)

places = st.tuples(st.integers(0, 999_999), st.integers(0, SEQ_MAX))


@given(places, places)
def test_positions_sort_by_epoch_and_then_by_seq(one: tuple[int, int], two: tuple[int, int]) -> None:
    keys = [position(make_epoch(ordinal, bytes(6)), Seq(seq)) for ordinal, seq in (one, two)]
    assert (keys[0] < keys[1]) is (one < two)
    assert (ordinal_of(keys[0]), seq_of(keys[0])) == one


@pytest.mark.parametrize(
    "table",
    [
        DELIVERIES,
        RECEIVED,
        CURSORS,
        COPIES,
        EPOCHS,
        DOUBTS,
        ERRANDS,
        REMEMBERED,
        QUARANTINED,
        INCIDENTS,
        LEDGER_FLOORS,
        AGENTS,
    ],
    ids=lambda table: table.name,
)
def test_columns_are_the_fields_of_the_records(table: Table[Any]) -> None:
    connection = sqlite3.connect(":memory:")
    for step in MIGRATIONS:
        connection.executescript(step.sql)
    columns = connection.execute(
        f"SELECT name, \"notnull\" FROM pragma_table_info('{table.name}')"
    ).fetchall()
    connection.close()
    assert tuple(name for name, _ in columns if name != "arrival") == table.columns
