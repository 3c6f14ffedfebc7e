"""Changed rows of one table, held back until they are asked for by a query or the transaction commits.

There is one writer: what it wrote lately it need not read again.

A tick touches the same few rows again and again (accepted, leased, processed); writing each once, many to a
statement, is most of what makes a batch cheap. Rows that a commit has written as changes (``outbox.changes``)
are held back longer: they are *behind* until somebody asks a question of the table, or they are many.
"""

from typing import Generic

from outbox.database import Database
from outbox.recent import Recent
from outbox.tables import Row, Table, Value, portions

_Key = tuple[Value, ...]


class WriteBuffer(Generic[Row]):
    """What was put into one table and is not yet in the database."""

    def __init__(self, database: Database, table: Table[Row]) -> None:
        self._database = database
        self.table = table
        self.key_of = table.key_reader()
        self.waiting: dict[_Key, Row] = {}
        """What the open transaction has put: of several under one key the last."""
        self.behind: dict[_Key, Row] = {}
        """Committed as changes, and not in the table."""
        self._caught_up: dict[_Key, Row] = {}
        """What the open transaction has taken from there into the table."""
        self._has_bodies = "body" in table.columns
        self._recent: Recent[_Key, Row] = Recent()
        """What stands in the table; no bodies, which may be large."""

    def get(self, key: _Key) -> Row | None:
        """The row that waits under this key, is behind, or was written lately."""
        return self.waiting.get(key) or self.behind.get(key) or self._recent.get(key)

    def flush(self) -> None:
        """Write what is behind and what waits, in the order in which the keys came.

        Raises StorageFull, StorageFailed.
        """
        rows = self.waiting
        if self.behind:
            rows = {**self.behind, **rows}
            self._caught_up, self.behind = self.behind, {}
        if not rows:
            return
        for size, values in portions(self.table.encode_all(rows.values())):
            self._database.execute(self.table.upsert(size), values)
        if not self._has_bodies:
            self._recent.keep_all(rows)
            self._recent.age()
        self.waiting.clear()

    def kept(self) -> None:
        """The transaction is committed; what still waits stands among the changes."""
        self.behind.update(self.waiting)
        self.waiting.clear()
        self._caught_up = {}

    def forget(self) -> None:
        """Rows were deleted from the table: which of those that were written lately is not known."""
        self._recent.clear()

    def take_back(self) -> None:
        """The transaction did not happen."""
        self.waiting.clear()
        self._recent.clear()
        if self._caught_up:
            self.behind, self._caught_up = self._caught_up, {}
