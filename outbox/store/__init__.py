"""The durable state of one gateway, as the engine sees it.

Two implementations pass the same tests: ``outbox.journal.Journal`` on SQLite and
``outbox.memory.MemoryStore``. All writes happen between ``begin`` and ``commit``; ``commit`` returns when
everything is on disk, ``rollback`` forgets everything since ``begin``. Reads see the writes of the open
transaction. One writer, one thread.

Methods raise StorageFull or StorageFailed; the owner of the store then rolls back.

A new table joins as a protocol of its own beside these, with its half in ``outbox.sql`` and in
``outbox.twin``.
"""

from typing import Protocol

from outbox.records import Identity
from outbox.store.agents import AgentStore
from outbox.store.blobs import BlobIndex
from outbox.store.copies import CopyStore
from outbox.store.cursors import CursorStore
from outbox.store.deliveries import DeliveryStore
from outbox.store.entries import EntryStore
from outbox.store.epochs import EpochStore
from outbox.store.errands import ErrandStore
from outbox.store.incidents import IncidentStore
from outbox.store.ledger import LedgerStore
from outbox.store.retention import RetentionStore


class Store(
    EntryStore,
    EpochStore,
    DeliveryStore,
    CursorStore,
    CopyStore,
    LedgerStore,
    IncidentStore,
    AgentStore,
    RetentionStore,
    BlobIndex,
    ErrandStore,
    Protocol,
):
    """What the engine may ask of the disk."""

    read_only: bool
    """There was no room for something, and none was found since. Set by the owner too, who hears of it."""

    def find_room(self) -> None:
        """End ``read_only`` if there is some again; between two transactions."""
        ...

    @property
    def only_asked(self) -> bool:
        """Whether the open transaction has changed nothing."""
        ...

    def begin(self) -> None:
        """Open the tick's transaction."""
        ...

    def commit(self) -> None:
        """Make it durable: one fsync. What has changed nothing succeeds, whether there is room or not."""
        ...

    def rollback(self) -> None:
        """Forget the open transaction; does nothing when none is open."""
        ...

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        ...
