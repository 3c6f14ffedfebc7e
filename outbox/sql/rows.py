"""Rows of the journal's tables: asked for over a connection, and held back by the one that writes.

Reads of the writer see its open transaction: by key they look into the table's buffer first, and a query
writes that buffer before it runs.
"""

from collections import Counter
from typing import Any

from outbox.buffer import WriteBuffer
from outbox.database import Database
from outbox.errors import StorageFailed
from outbox.tables import Row, Table, Value, Values


class Rows:
    """Whole rows of one database, as its connection sees them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        found = self.database.rows(table.select_key(), table.encode_key(key))
        return table.decode(found[0]) if found else None

    def all(self, table: Table[Row], clause: str, *values: Value) -> list[Row]:
        """The rows of a query that is bounded by its own text."""
        rows: list[Values] = self.database.rows(table.select(clause), values)
        return [table.decode(row) for row in rows]

    def counts(self, table: Table[Row], column: str, *parts: str) -> dict[str, int]:
        """How many rows have each value of a column, in order, or those of several parts of the table."""
        sql = " UNION ALL ".join(
            f"SELECT {column}, count(*) FROM {table.name} {part} GROUP BY {column}"  # noqa: S608 - own names
            for part in parts or ("",)
        )
        found: Counter[str] = Counter()
        for value, count in self.database.rows(sql):
            found[str(value)] += int(count)
        return dict(sorted(found.items()))

    def least(self, table: Table[Row], column: str) -> int | None:
        """The smallest number in a column; None when there is none."""
        sql = f"SELECT min({column}) FROM {table.name} WHERE {column} IS NOT NULL"  # noqa: S608 - as above
        found = self.database.rows(sql)[0][0]
        return None if found is None else int(found)


class BufferedRows(Rows):
    """The writer's rows: changed ones wait for a query of their table or for the commit."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._buffers = _Buffers(database)

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        waiting: Row | None = self._buffers[table].get(key)
        return waiting or super().find(table, *key)

    def all(self, table: Table[Row], clause: str, *values: Value) -> list[Row]:
        """The rows of a query that is bounded by its own text."""
        self._buffers[table].flush()
        return super().all(table, clause, *values)

    def counts(self, table: Table[Row], column: str, *parts: str) -> dict[str, int]:
        """How many rows have each value of a column."""
        self._buffers[table].flush()
        return super().counts(table, column, *parts)

    def least(self, table: Table[Row], column: str) -> int | None:
        """The smallest number in a column; None when there is none."""
        self._buffers[table].flush()
        return super().least(table, column)

    def put(self, table: Table[Row], row: Row) -> None:
        """Insert or replace a row. Raises StorageFailed outside a transaction."""
        buffer = self._buffers[table]
        if not buffer:  # else a transaction is open: nothing waits after its end
            self.need_transaction()
        buffer.put(row)

    def drop(self, table: Table[Row], clause: str, *values: Value) -> int:
        """Delete rows; returns how many. Raises StorageFailed outside a transaction."""
        self.need_transaction()
        self._buffers[table].flush()
        self._buffers[table].clear()
        return self.database.execute(f"DELETE FROM {table.name} {clause}", values)  # noqa: S608 - own names

    def need_transaction(self) -> None:
        """Raises StorageFailed unless one is open."""
        if not self.database.in_transaction:
            raise StorageFailed("a write outside a transaction")

    def flush(self) -> None:
        """Write all that waits."""
        for buffer in self._buffers.values():
            buffer.flush()

    def clear(self) -> None:
        """Forget all that waits."""
        for buffer in self._buffers.values():
            buffer.clear()


class _Buffers(dict[Table[Any], WriteBuffer[Any]]):
    """One for each table that was asked for."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def __missing__(self, table: Table[Any]) -> WriteBuffer[Any]:
        made = self[table] = WriteBuffer(self._database, table)
        return made


class Asking:
    """What the questions about each noun stand on."""

    _rows: Rows


class Writing(Asking):
    """What the writer's half of each noun stands on."""

    _rows: BufferedRows
