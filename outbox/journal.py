"""The durable state of one gateway on SQLite: ``outbox.store.Store`` with one fsync a commit.

Entries of the outbox are written at once, many rows to a statement. Rows of other tables wait in buffers,
where reads by key find them; a query writes its own table's buffer first, and the commit writes all.

What ``read`` returns is committed: while a transaction is open, its entries are not there yet.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from outbox.batch import IndexedEntry, batch_bytes, check_batch
from outbox.buffer import WriteBuffer
from outbox.chain import Checkpoint, Entry, Head, Page, Verify
from outbox.database import Database
from outbox.errors import StorageFailed, WorldError
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq, event_id_bytes
from outbox.limits import WAL_BYTES
from outbox.reader import JournalReader
from outbox.records import Delivery, Identity, Incident, LocalAgent, Quarantined, Received, Remembered
from outbox.schema import COMPONENT, MIGRATIONS, position
from outbox.tables import (
    AGENTS,
    CURSORS,
    DELIVERIES,
    INCIDENTS,
    QUARANTINED,
    RECEIVED,
    REMEMBERED,
    Cursor,
    OutboxRow,
    Row,
    insert,
    statement_sizes,
)
from outbox.verification import Progress


class Journal:
    """The one writer of a node's database. Method contracts are those of ``outbox.store.Store``.

    ``database`` is open to packages that keep tables in the same file and write in the same transaction.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._reader = JournalReader(database)
        self._head = self._committed = self._reader.head()
        self._torn = False
        self._deliveries = WriteBuffer(database, DELIVERIES)
        self._received = WriteBuffer(database, RECEIVED)
        self._cursors = WriteBuffer(database, CURSORS)
        self._remembered = WriteBuffer(database, REMEMBERED)
        self._quarantined = WriteBuffer(database, QUARANTINED)
        self._incidents = WriteBuffer(database, INCIDENTS)
        self._agents = WriteBuffer(database, AGENTS)
        self._buffers: tuple[WriteBuffer[Any], ...] = (
            self._deliveries,
            self._received,
            self._cursors,
            self._remembered,
            self._quarantined,
            self._incidents,
            self._agents,
        )

    @classmethod
    def create(cls, path: Path, identity: Identity, *, wal_bytes: int = WAL_BYTES) -> Self:
        """Make a node's journal; a creation that was cut short may be repeated.

        Raises StorageFailed when there is one already, StorageFull.
        """
        return cls._opened(Database.create(path, wal_bytes=wal_bytes), identity)

    @staticmethod
    def made(path: Path) -> bool:
        """Whether a journal is there and some node's: a creation that was cut short leaves nobody's.

        Raises StorageFailed.
        """
        if not path.exists():
            return False
        database = Database.open_read_only(path)
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
        return cls._opened(Database.open(path, wal_bytes=wal_bytes), None)

    @classmethod
    def _opened(cls, database: Database, identity: Identity | None) -> Self:
        try:
            database.migrate(COMPONENT, MIGRATIONS)
            if identity is not None:
                _claim(database, identity)
            return cls(database)
        except WorldError:
            database.close()
            raise

    def close(self) -> None:
        """Roll back what is open and close the database."""
        self.database.close()

    def begin(self) -> None:
        """Open the tick's transaction. Raises StorageFailed when one is open."""
        self.database.begin()

    def commit(self) -> None:
        """Write the buffers and make the transaction durable: one fsync."""
        if self._torn:
            raise StorageFailed("half a batch was appended; roll back")
        for buffer in self._buffers:
            buffer.flush()
        self.database.commit()
        self._committed = self._head

    def rollback(self) -> None:
        """Forget the open transaction; does nothing when none is open."""
        for buffer in self._buffers:
            buffer.clear()
        self._head = self._committed
        self._torn = False
        self.database.rollback()

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        return self._reader.identity()

    # --- the outbox

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis."""
        return self._head

    def genesis(self) -> Head:
        """The head before the first entry."""
        return self._reader.genesis()

    def append(self, entries: Sequence[Entry], checkpoint: Checkpoint) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        self._need_transaction()
        batch = check_batch(self.identity(), self._head, entries, checkpoint)
        self._torn = True
        self._insert(batch)
        self.database.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)",
            (
                position(checkpoint.epoch, checkpoint.seq),
                checkpoint.hash,
                checkpoint.signature,
                batch_bytes(entries),
            ),
        )
        self._head = checkpoint.head
        self._torn = False

    def _insert(self, batch: Sequence[IndexedEntry]) -> None:
        rows = [_outbox_row(self._head.epoch, item) for item in batch]
        done = 0
        for size in statement_sizes(len(rows)):
            values = [value for row in rows[done : done + size] for value in row]
            self.database.execute(insert("outbox", OutboxRow._fields, size), values)
            done += size

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream."""
        return self._reader.page(after, self._committed, entries_max, bytes_max)

    def events_about(self, event: EventId) -> list[tuple[Seq, bytes]]:
        """Bodies of own entries that are this event or refer to it, in order."""
        return self._reader.events_about(event)

    def verify(self, verify: Verify, start: Head | None = None, progress: Progress | None = None) -> Head:
        """Verify all of the outbox, or what follows ``start``. Raises BrokenChain, BadCheckpoint."""
        return self._reader.verify(verify, start, progress)

    def verify_tail(self, verify: Verify) -> Head:
        """Verify the last batch, before anything is appended. Raises BrokenChain, BadCheckpoint."""
        return self._reader.verify_tail(verify)

    # --- the sender's side

    def delivery(self, event: EventId) -> Delivery | None:
        """The row of an own deliverable event."""
        return self._deliveries.get(event) or self._reader.delivery(event)

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        self._put(self._deliveries, row)

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        return self._after(self._deliveries).due_deliveries(now_ms, limit)

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        return self._after(self._deliveries).next_delivery_ms()

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        return self._after(self._deliveries).unanswered(node, upto, emitted_before_ms, limit)

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        return self._after(self._deliveries).deliveries(states, limit)

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return self._after(self._deliveries).count_deliveries()

    # --- the receiver's side

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        waiting = self._cursors.get(source)
        return waiting.head if waiting else self._reader.cursor(source)

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return self._after(self._cursors).cursors()

    def put_cursor(self, source: NodeId, head: Head) -> None:
        """Move it."""
        self._put(self._cursors, Cursor(source, head.epoch, head.seq, head.hash))

    def received(self, event: EventId) -> Received | None:
        """The ledger row of an event that came for a local agent."""
        return self._received.get(event) or self._reader.received(event)

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        self._put(self._received, row)

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance."""
        return self._after(self._received).open_turns()

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        return self._after(self._received).inbox(agent, done=done, limit=limit)

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return self._after(self._received).count_received()

    # --- the rest

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        return self._remembered.get(agent, key) or self._reader.remembered(agent, key)

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        self._put(self._remembered, row)

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        self._put(self._quarantined, row)

    def quarantined(self) -> list[Quarantined]:
        """All of them, in order of arrival."""
        return self._after(self._quarantined).quarantined()

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self._incidents.get(kind, subject) or self._reader.incident(kind, subject)

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        self._put(self._incidents, row)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        return self._after(self._incidents).incidents(open_only=open_only)

    def agents(self) -> list[LocalAgent]:
        """The agents that live here, by name."""
        return self._after(self._agents).agents()

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        self._put(self._agents, row)

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; an absent one is fine."""
        self._need_transaction()
        self._agents.flush()
        self.database.execute("DELETE FROM agents WHERE name = ?", (name,))

    def _put(self, buffer: WriteBuffer[Row], row: Row) -> None:
        self._need_transaction()
        buffer.put(row)

    def _after(self, buffer: WriteBuffer[Row]) -> JournalReader:
        buffer.flush()
        return self._reader

    def _need_transaction(self) -> None:
        if not self.database.in_transaction:
            raise StorageFailed("a write outside a transaction")


def _outbox_row(epoch: Epoch, item: IndexedEntry) -> OutboxRow:
    return OutboxRow(
        position(epoch, item.entry.seq),
        event_id_bytes(item.event),
        item.attempt,
        item.kind,
        None if item.corr is None else event_id_bytes(item.corr),
        item.entry.header,
        item.entry.body,
    )


def _claim(database: Database, identity: Identity) -> None:
    with database.transaction():
        if database.rows("SELECT 1 FROM identity"):
            raise StorageFailed(f"{database.path} belongs to a node already", hint="open it instead")
        database.execute(
            "INSERT INTO identity VALUES (?, ?, ?)", (identity.mesh, identity.node, identity.epoch)
        )
