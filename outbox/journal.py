"""The durable state of one gateway on SQLite: ``outbox.store.Store`` with one fsync a commit.

Entries of the outbox are written at once, many rows to a statement. Rows of other tables wait in buffers,
where reads by key find them; a query writes its own table's buffer first, and the commit writes all: most of
them as one value, which goes to their tables later (``outbox.changes``).
"""

from contextlib import suppress
from pathlib import Path
from typing import Self

from outbox.database import Database
from outbox.errors import StorageFailed, StorageFull, WorldError
from outbox.limits import WAL_BYTES
from outbox.reader import read_identity
from outbox.recent import Recent
from outbox.records import Identity
from outbox.schema import COMPONENT, MIGRATIONS
from outbox.sql.agents import AgentWrites
from outbox.sql.blobs import BlobWrites
from outbox.sql.copies import CopyWrites
from outbox.sql.cursors import CursorWrites
from outbox.sql.deliveries import DeliveryWrites
from outbox.sql.errands import ErrandWrites
from outbox.sql.incidents import IncidentWrites
from outbox.sql.ledger import LedgerWrites
from outbox.sql.retention import RetentionWrites
from outbox.sql.rows import BufferedRows


class Journal(
    RetentionWrites,
    DeliveryWrites,
    CursorWrites,
    CopyWrites,
    LedgerWrites,
    IncidentWrites,
    AgentWrites,
    BlobWrites,
    ErrandWrites,
):
    """The one writer of a node's database. Method contracts are those of ``outbox.store.Store``.

    ``database`` is open to packages that keep tables in the same file and write in the same transaction.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._rows = BufferedRows(database)
        self._identity = read_identity(database)
        self._head = self._committed = self._checkpointed(0)
        self._lasting = self._identity
        self._torn = False
        self.read_only = False
        self.open_kinds = set(self.count_open_incidents())
        self._turns, self._unknown_upto = Recent(), None
        self._size = None
        self._quiet, self._oldest = None, {}

    @classmethod
    def create(cls, path: Path, identity: Identity, *, wal_bytes: int = WAL_BYTES) -> Self:
        """Make a node's journal; a creation that was cut short may be repeated.

        Raises StorageFailed when there is one already, StorageFull.
        """
        return cls.over(Database.create(path, wal_bytes=wal_bytes), identity)

    @staticmethod
    def made(path: Path) -> bool:
        """Whether a journal is there and some node's: a creation that was cut short leaves nobody's.

        Raises StorageFailed.
        """
        if not path.exists():
            return False
        database = Database.open_to_look(path)
        try:
            tables = database.rows("SELECT 1 FROM sqlite_master WHERE name = 'identity'")
            return bool(tables) and bool(database.rows("SELECT 1 FROM identity"))
        finally:
            database.close()

    @classmethod
    def open(cls, path: Path, *, wal_bytes: int = WAL_BYTES) -> Self:
        """Open a node's journal, bringing its tables up to date.

        Raises StorageFull, StorageFailed, DatabaseTooNew.
        """
        return cls.over(Database.open(path, wal_bytes=wal_bytes), None)

    @classmethod
    def over(cls, database: Database, identity: Identity | None) -> Self:
        """Take a connection over, which is closed when that fails; ``identity``: of whom it becomes.

        Raises StorageFull, StorageFailed, DatabaseTooNew.
        """
        try:
            database.migrate(COMPONENT, MIGRATIONS)
            if identity is not None:
                _claim(database, identity)
            database.write_at_commit()
            journal = cls(database)
            journal._catch_up()
        except WorldError:
            database.close()
            raise
        return journal

    def _catch_up(self) -> None:
        """Put into the tables what a process that has ended had not put there yet; on a full disk, later."""
        with suppress(StorageFull):
            try:
                self.begin()
                self._rows.catch_up()
                self.commit()
            finally:
                self.rollback()

    def close(self) -> None:
        """Roll back what is open and close the database."""
        self.database.close()

    def begin(self) -> None:
        """Open the tick's transaction. Raises StorageFailed when one is open."""
        self.database.begin()
        self._rows.begun()

    def commit(self) -> None:
        """Write the buffers and make the transaction durable: one fsync.

        What has only asked needs no room: rows that it has put into their tables are taken out again.
        """
        if self._torn:
            raise StorageFailed("half a batch was appended; roll back")
        try:
            self._keep()
        except StorageFull:
            self.read_only = True
            if not self.only_asked:
                raise
            self._rows.take_back()
            self.database.rollback()

    @property
    def only_asked(self) -> bool:
        """Whether the open transaction has changed nothing."""
        return self._rows.only_asked

    def find_room(self) -> None:
        """End ``read_only`` if there is some again."""
        with suppress(StorageFull):
            try:
                self.begin()
                self._rows.try_room()
                self._keep()
                self.read_only = False
            finally:
                self.rollback()

    def _keep(self) -> None:
        self._rows.before_commit()
        self.database.commit()
        self._rows.kept()
        self._committed, self._lasting = self._head, self._identity
        self._age_turns()

    def rollback(self) -> None:
        """Forget the open transaction; does nothing when none is open."""
        self._rows.take_back()
        self._head, self._identity = self._committed, self._lasting
        self._forget_turns()
        self._torn = False
        self._size = self._quiet = None
        self._oldest.clear()
        self.database.rollback()


def _claim(database: Database, identity: Identity) -> None:
    with database.transaction():
        if database.rows("SELECT 1 FROM identity"):
            raise StorageFailed(f"{database.path} belongs to a node already", hint="open it instead")
        database.execute(
            "INSERT INTO identity VALUES (?, ?, ?)", (identity.mesh, identity.node, identity.epoch)
        )
