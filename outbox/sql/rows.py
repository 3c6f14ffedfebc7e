"""Rows of the journal's tables: asked for over a connection, and held back by the one that writes.

Reads of the writer see its open transaction: by key they look into the table's buffer first, and a query
writes that buffer before it runs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from outbox.buffer import WriteBuffer
from outbox.changes import ALL_IN_TABLES, BEHIND, NO_ROWS, pack, unpack
from outbox.database import Database
from outbox.errors import StorageFailed
from outbox.limits import CHANGES_BYTES_MAX, ROWS_BEHIND_MAX, ROWS_BUFFERED_MAX
from outbox.tables import Row, Table, Value, Values, portions

Tables = Sequence[Table[Any]]

_ADD = "INSERT INTO changes VALUES (?, ?)"


def changes_after(database: Database, number: int) -> list[tuple[int, bytes]]:
    """Changes after a number, in order, with theirs: none has ever the number of another one."""
    sql = "SELECT number, rows FROM changes WHERE number > ? ORDER BY number"
    return [(found, value) for found, value in database.rows(sql, (number,))]


class Rows:
    """Whole rows of one database, as its connection sees them."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        found = self.database.rows(table.select_key(), table.encode_key(key))
        return table.decode(found[0]) if found else None

    def ask(self, tables: Tables, sql: str, values: Sequence[Value] = ()) -> list[Values]:
        """All rows of a query that is bounded by its own text, and asks these tables."""
        del tables  # this connection sees them as they are
        return self.database.rows(sql, values)

    def all(self, table: Table[Row], clause: str, *values: Value, beside: Tables = ()) -> list[Row]:
        """The rows of a query that is bounded by its own text, and may ask other tables beside."""
        rows = self.ask((table, *beside), table.select(clause), values)
        return [table.decode(row) for row in rows]

    def some(self, table: Table[Row], column: str, values: Sequence[Value]) -> list[Row]:
        """The rows that have one of these values in an indexed column, portion by portion, in its order.

        Who lists asks for the keys first and for the rows then: in one statement a reader's view of what is
        behind would be gone through from one end to the other.
        """
        found: list[Row] = []
        for size, portion in portions([(value,) for value in values]):
            clause = f"WHERE {column} IN ({', '.join('?' * size)}) ORDER BY {column}"
            found += self.all(table, clause, *portion)
        return found

    @contextmanager
    def moment(self) -> Iterator[None]:
        """What is asked inside is asked of one state of the database."""
        yield  # nobody else writes to what the writer sees

    def counts(self, table: Table[Row], column: str, *parts: str) -> dict[str, int]:
        """How many rows have each value of a column, in order, or those of several parts of the table."""
        sql = " UNION ALL ".join(
            f"SELECT {column}, count(*) FROM {table.name} {part} GROUP BY {column}"  # noqa: S608 - own names
            for part in parts or ("",)
        )
        found: Counter[str] = Counter()
        for value, count in self.ask((table,), sql):
            found[str(value)] += int(count)
        return dict(sorted(found.items()))

    def least(self, table: Table[Row], column: str) -> int | None:
        """The smallest number in a column; None when there is none."""
        sql = f"SELECT min({column}) FROM {table.name} WHERE {column} IS NOT NULL"  # noqa: S608 - as above
        found = self.ask((table,), sql)[0][0]
        return None if found is None else int(found)


class BufferedRows(Rows):
    """The writer's rows: changed ones wait for a query of their table or for the commit.

    The commit writes those of the tables that may be behind as one row of ``changes``. Before a question of
    such a table all that is behind goes into it, with the open transaction; where none is open it is taken
    out again after the answer, so that there are answers on a full disk too.
    """

    def __init__(self, database: Database) -> None:
        """Raises StorageFailed when what is behind cannot be read."""
        super().__init__(database)
        self._buffers = _Buffers(database)
        self._late = tuple(self._buffers[table] for table in BEHIND)
        self._number, self._bytes, self._added = 0, 0, 0
        self._caught_up = False
        """Whether the open transaction has put all into the tables."""
        self._has_put, self._before, self._moved = False, 0, 0
        for self._number, value in changes_after(database, 0):
            self._bytes = self._bytes + len(value) if value else 0
            for table, rows in (unpack(value) if value else {}).items():
                buffer = self._buffers[table]
                buffer.waiting.update((buffer.key_of(row), row) for row in rows)
        for buffer in self._late:
            buffer.kept()

    def find(self, table: Table[Row], *key: Value) -> Row | None:
        """One row by its key."""
        waiting: Row | None = self._buffers[table].get(key)
        return waiting or super().find(table, *key)

    def ask(self, tables: Tables, sql: str, values: Sequence[Value] = ()) -> list[Values]:
        """All rows of a query that is bounded by its own text, and asks these tables."""
        late = any(table in BEHIND for table in tables)
        if self.database.in_transaction:
            self._write(tables, late=late)
        elif late and any(buffer.behind for buffer in self._late):
            return self._look(sql, values)
        return super().ask(tables, sql, values)

    def begun(self) -> None:
        """A transaction is open."""
        self._has_put, self._before, self._moved = False, self.database.changes, 0

    @property
    def only_asked(self) -> bool:
        """Whether the open transaction has changed nothing, wherever rows stand by now."""
        return not self._has_put and self.database.changes == self._before + self._moved

    def put(self, table: Table[Row], row: Row) -> None:
        """Insert or replace a row. Raises StorageFailed outside a transaction, StorageFull."""
        buffer = self._buffers[table]
        if not buffer.waiting:  # else a transaction is open: nothing waits after its end
            self.need_transaction()
            self._has_put = True
        elif len(buffer.waiting) >= ROWS_BUFFERED_MAX:
            self._write((table,), late=table in BEHIND)
        buffer.waiting[buffer.key_of(row)] = row

    def drop(self, table: Table[Row], clause: str, *values: Value) -> int:
        """Delete rows; returns how many. Raises StorageFailed outside a transaction."""
        self.need_transaction()
        self._write((table,), late=table in BEHIND)
        self._buffers[table].forget()
        return self.database.execute(f"DELETE FROM {table.name} {clause}", values)  # noqa: S608 - own names

    def need_transaction(self) -> None:
        """Raises StorageFailed unless one is open."""
        if not self.database.in_transaction:
            raise StorageFailed("a write outside a transaction")

    def catch_up(self) -> None:
        """Put all that is behind into its tables, in the open transaction.

        Raises StorageFull, StorageFailed.
        """
        before = self.database.changes
        if self._bytes and not self._caught_up:
            self._number += 1
            self.database.execute("DELETE FROM changes")
            self.database.execute(_ADD, (self._number, ALL_IN_TABLES))
        self._caught_up = True
        for buffer in self._late:
            buffer.flush()
        self._moved += self.database.changes - before

    def try_room(self) -> None:
        """Write a change that means nothing, in a transaction of its own.

        Raises StorageFull, StorageFailed.
        """
        self._number += 1
        self._added = len(NO_ROWS)
        self.database.execute(_ADD, (self._number, NO_ROWS))

    def before_commit(self) -> None:
        """Write all that waits; nothing is put or asked after it. Raises StorageFull, StorageFailed."""
        for table, buffer in self._buffers.items():
            if buffer.waiting and table not in BEHIND:
                buffer.flush()
        if self._caught_up or self._is_much():
            self.catch_up()
        else:
            self._add()

    def kept(self) -> None:
        """The transaction is committed."""
        self._bytes = self._added + (0 if self._caught_up else self._bytes)
        for buffer in self._late:
            if buffer.waiting or self._caught_up:
                buffer.kept()
        self._added, self._caught_up = 0, False

    def take_back(self) -> None:
        """The transaction did not happen: forget all that waits."""
        self._added, self._caught_up = 0, False
        for buffer in self._buffers.values():
            buffer.take_back()

    def _is_much(self) -> bool:
        rows = 0
        for buffer in self._late:
            rows += len(buffer.behind) + len(buffer.waiting)
        return rows > ROWS_BEHIND_MAX or self._bytes > CHANGES_BYTES_MAX

    def _add(self) -> None:
        changed = {buffer.table: buffer.waiting.values() for buffer in self._late if buffer.waiting}
        if changed:
            value = pack(changed)
            self._number += 1
            self._added = len(value)
            self.database.execute(_ADD, (self._number, value))

    def _write(self, tables: Tables, *, late: bool) -> None:
        for table in tables:
            if table not in BEHIND:
                self._buffers[table].flush()
        if late:
            self.catch_up()

    def _look(self, sql: str, values: Sequence[Value]) -> list[Values]:
        self.database.begin()
        try:
            self.catch_up()
            return self.database.rows(sql, values)
        finally:
            self.database.rollback()
            self.take_back()


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
