"""The durable state of one gateway, as the engine sees it.

Two implementations pass the same tests: ``outbox.journal.Journal`` on SQLite and
``outbox.memory.MemoryStore``. All writes happen between ``begin`` and ``commit``; ``commit`` returns when
everything is on disk, ``rollback`` forgets everything since ``begin``. Reads see the writes of the open
transaction. One writer, one thread.

Methods raise StorageFull or StorageFailed; the owner of the store then rolls back.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import Delivery, Identity, Incident, LocalAgent, Quarantined, Received, Remembered


class Store(Protocol):
    """What the engine may ask of the disk."""

    def begin(self) -> None:
        """Open the tick's transaction."""
        ...

    def commit(self) -> None:
        """Make it durable: one fsync."""
        ...

    def rollback(self) -> None:
        """Forget the open transaction; does nothing when none is open."""
        ...

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        ...

    # --- the outbox

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis."""
        ...

    def append(self, entries: Sequence[Entry], checkpoint: Checkpoint) -> None:
        """Add entries that follow the head and end in this checkpoint (of ``entries[-1].seq``).

        The header is decoded for the index: kind, event id, attempt, corrId.
        Raises StorageFailed when they do not follow on or (event id, attempt) exists; nothing but a rollback
        is possible then.
        """
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream.

        A page holds at least one whole batch even above the limits. ``after.hash`` is not looked at.
        Raises ForeignEpoch, CursorPastEnd, CursorBelowFloor, InvalidCursor (negative seq).
        """
        ...

    def events_about(self, event: EventId) -> list[tuple[Seq, bytes]]:
        """Bodies of own entries that are this event (any attempt) or refer to it by corrId, in order."""
        ...

    # --- the sender's side

    def delivery(self, event: EventId) -> Delivery | None:
        """The row of an own deliverable event."""
        ...

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        ...

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        ...

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        ...

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node at or below a position, emitted by that time, in order of seq."""
        ...

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest (by ``created_at_ms``) first."""
        ...

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        ...

    # --- the receiver's side

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        ...

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        ...

    def put_cursor(self, source: NodeId, head: Head) -> None:
        """Move it."""
        ...

    def received(self, event: EventId) -> Received | None:
        """The ledger row of an event that came for a local agent (event ids are unique in the mesh)."""
        ...

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        ...

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance (first accepted first)."""
        ...

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        ...

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        ...

    # --- the rest

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        ...

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        ...

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        ...

    def quarantined(self) -> list[Quarantined]:
        """All of them."""
        ...

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        ...

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        ...

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        ...

    def agents(self) -> list[LocalAgent]:
        """The agents that live here."""
        ...

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        ...

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; nothing happens when it is not there."""
        ...
