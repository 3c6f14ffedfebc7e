"""Everything that can be asked of a journal, over a connection of its own beside the writer's.

Links that catch up, ``trace``, the command line and the collector read so: they see what is committed.
"""

from pathlib import Path
from typing import Self

from outbox.database import Database
from outbox.errors import StorageFailed, WorldError
from outbox.records import Identity
from outbox.schema import COMPONENT, MIGRATIONS
from outbox.sql.agents import AgentReads
from outbox.sql.behind import SeenRows
from outbox.sql.blobs import BlobReads
from outbox.sql.copies import CopyReads
from outbox.sql.cursors import CursorReads
from outbox.sql.deliveries import DeliveryReads
from outbox.sql.errands import ErrandReads
from outbox.sql.incidents import IncidentReads
from outbox.sql.ledger import LedgerReads
from outbox.sql.retention import RetentionReads


class JournalReader(
    RetentionReads,
    DeliveryReads,
    CursorReads,
    CopyReads,
    LedgerReads,
    IncidentReads,
    AgentReads,
    BlobReads,
    ErrandReads,
):
    """Read-only view of one journal; the methods are those of ``outbox.store.Store``.

    All of them raise StorageFailed when the database cannot be read.
    """

    def __init__(self, database: Database) -> None:
        self._rows = SeenRows(database)
        read_identity(database)

    @property
    def _identity(self) -> Identity:  # type: ignore[override]  # the writer may begin a new epoch
        return read_identity(self._rows.database)

    @classmethod
    def open(cls, path: Path) -> Self:
        """A reader with its own connection. Raises StorageFailed, DatabaseTooNew."""
        database = Database.open_read_only(path)
        try:
            database.check_version(COMPONENT, MIGRATIONS)
            return cls(database)
        except WorldError:
            database.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._rows.database.close()


def read_identity(database: Database) -> Identity:
    """Whose journal a database is. Raises StorageFailed when it is nobody's."""
    found = database.rows("SELECT mesh, node, epoch FROM identity")
    if len(found) != 1:
        raise StorageFailed(
            f"{database.path} belongs to no node",
            hint="repeat gateway init or join if that was cut short; else: gateway restore",
        )
    return Identity(*found[0])
