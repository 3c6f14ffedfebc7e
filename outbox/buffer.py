"""Changed rows of one table, held back until they are asked for by a query or the transaction commits.

There is one writer: what it wrote lately it need not read again.

A tick touches the same few rows again and again (accepted, leased, processed); writing each once, many to a
statement, is most of what makes a batch cheap.
"""

from typing import Generic

from outbox.database import Database
from outbox.limits import ROWS_BUFFERED_MAX
from outbox.recent import RecentRows
from outbox.tables import Row, Table, Value, portions


class WriteBuffer(Generic[Row]):
    """What the open transaction has put into one table and not yet into the database."""

    def __init__(self, database: Database, table: Table[Row]) -> None:
        self._database = database
        self._table = table
        self._key_of = table.key_reader()
        self._has_bodies = "body" in table.columns
        self._rows: dict[tuple[Value, ...], Row] = {}
        self._written: RecentRows[Row] = RecentRows()

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._rows)

    def get(self, key: tuple[Value, ...]) -> Row | None:
        """The row that waits under this key, or was written lately."""
        return self._rows.get(key) or self._written.get(key)

    def put(self, row: Row) -> None:
        """Hold a row back; a later one of the same key takes its place. Raises as ``flush``."""
        if len(self._rows) >= ROWS_BUFFERED_MAX:
            self.flush()
        self._rows[self._key_of(row)] = row

    def flush(self) -> None:
        """Write what waits, in the order in which the keys came. Raises StorageFull, StorageFailed."""
        if not self._rows:
            return
        for size, values in portions(self._table.encode_all(self._rows.values())):
            self._database.execute(self._table.upsert(size), values)
        if self._has_bodies:
            for key, row in self._rows.items():
                self._written.keep(key, row)
        else:
            self._written.keep_all(self._rows)
        self._rows.clear()

    def clear(self) -> None:
        """Forget what waits, and what was written: the transaction is taken back, or rows were deleted."""
        self._rows.clear()
        self._written.clear()
