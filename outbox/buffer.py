"""Changed rows of one table, held back until they are asked for by a query or the transaction commits.

There is one writer: what it wrote lately it need not read again.

A tick touches the same few rows again and again (accepted, leased, processed); writing each once, many to a
statement, is most of what makes a batch cheap. Rows that a commit has written as changes (``outbox.changes``)
are held back longer: they are *behind* until somebody asks a question of the table, or they are many.
"""

from typing import Generic

from outbox.database import Database
from outbox.limits import ROWS_BUFFERED_MAX
from outbox.recent import RecentRows
from outbox.tables import Row, Table, Value, portions

_Key = tuple[Value, ...]


class WriteBuffer(Generic[Row]):
    """What was put into one table and is not yet in the database."""

    def __init__(self, database: Database, table: Table[Row]) -> None:
        self._database = database
        self._table = table
        self._key_of = table.key_reader()
        self._has_bodies = "body" in table.columns
        self._rows: dict[_Key, Row] = {}
        self._behind: dict[_Key, Row] = {}
        self._caught_up: dict[_Key, Row] = {}
        """What the open transaction has taken from there into the table."""
        self._written: RecentRows[Row] = RecentRows()

    def __bool__(self) -> bool:
        """Whether anything of the open transaction waits."""
        return bool(self._rows)

    @property
    def waiting(self) -> dict[_Key, Row]:
        """What the open transaction has put."""
        return self._rows

    @property
    def behind(self) -> dict[_Key, Row]:
        """Committed as changes, and not in the table."""
        return self._behind

    def get(self, key: _Key) -> Row | None:
        """The row that waits under this key, is behind, or was written lately."""
        return self._rows.get(key) or self._behind.get(key) or self._written.get(key)

    def is_full(self) -> bool:
        """Whether it is time to ``flush``, before anything more is put."""
        return len(self._rows) >= ROWS_BUFFERED_MAX

    def put(self, row: Row) -> None:
        """Hold a row back; a later one of the same key takes its place."""
        self._rows[self._key_of(row)] = row

    def flush(self) -> None:
        """Write what is behind and what waits, in the order in which the keys came.

        Raises StorageFull, StorageFailed.
        """
        rows = self._rows
        if self._behind:
            rows = {**self._behind, **rows}
            self._caught_up, self._behind = self._behind, {}
        if not rows:
            return
        for size, values in portions(self._table.encode_all(rows.values())):
            self._database.execute(self._table.upsert(size), values)
        if self._has_bodies:
            for key, row in rows.items():
                self._written.keep(key, row)
        else:
            self._written.keep_all(rows)
        self._rows.clear()

    def kept(self) -> None:
        """The transaction is committed; what still waits stands among the changes."""
        self._behind.update(self._rows)
        self._rows.clear()
        self._caught_up = {}

    def forget(self) -> None:
        """Rows were deleted from the table: which of those that were written lately is not known."""
        self._written.clear()

    def take_back(self) -> None:
        """The transaction did not happen."""
        self._rows.clear()
        self._written.clear()
        if self._caught_up:
            self._behind, self._caught_up = self._caught_up, {}
