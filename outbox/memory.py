"""The in-memory twin of the journal, for tests and the deterministic simulation.

It passes the same tests as the journal. A transaction is an undo log: each write remembers how to take itself
back. Only maps whose rows are never removed are iterated over unsorted, so the order of every answer is the
same in every run.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from outbox.batch import batch_bytes, check_batch
from outbox.chain import Checkpoint, Entry, Head, Page, genesis
from outbox.cursor import check_cursor, page_end
from outbox.errors import StorageFailed
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import (
    Delivery,
    DeliveryState,
    Identity,
    Incident,
    LocalAgent,
    Quarantined,
    Received,
    Remembered,
    TurnState,
)

_Key = TypeVar("_Key")
_Row = TypeVar("_Row")

_OPEN = frozenset({TurnState.HELD, TurnState.QUEUED, TurnState.LEASED})


class MemoryStore:
    """``outbox.store.Store`` in dictionaries; nothing survives the object."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._undo: list[Callable[[], object]] | None = None
        self._torn = False
        self._entries: list[Entry] = []
        self._batches: list[tuple[Seq, int]] = []
        self._checkpoints: dict[Seq, Checkpoint] = {}
        self._attempts: dict[tuple[EventId, int], Seq] = {}
        self._about: dict[EventId, tuple[Seq, ...]] = {}
        self._head = self._committed = genesis(identity.mesh, identity.node, identity.epoch)
        self._deliveries: dict[EventId, Delivery] = {}
        self._timed: dict[EventId, Delivery] = {}
        self._emitted: dict[EventId, Delivery] = {}
        self._cursors: dict[NodeId, Head] = {}
        self._received: dict[EventId, Received] = {}
        self._arrivals: dict[EventId, int] = {}
        self._open: dict[EventId, Received] = {}
        self._remembered: dict[tuple[AgentId, str], Remembered] = {}
        self._quarantined: dict[tuple[NodeId, str, Seq], Quarantined] = {}
        self._incidents: dict[tuple[str, str], Incident] = {}
        self._agents: dict[AgentId, LocalAgent] = {}

    # --- the transaction

    def begin(self) -> None:
        """Open the tick's transaction."""
        if self._undo is not None:
            raise StorageFailed("a transaction is open already")
        self._undo = []

    def commit(self) -> None:
        """Keep what was written."""
        self._log()
        if self._torn:
            raise StorageFailed("half a batch was appended; roll back")
        self._undo = None
        self._committed = self._head

    def rollback(self) -> None:
        """Take back the open transaction, last write first."""
        for take_back in reversed(self._undo or []):
            take_back()
        self._undo = None
        self._torn = False
        self._head = self._committed

    def _log(self) -> list[Callable[[], object]]:
        if self._undo is None:
            raise StorageFailed("a write outside a transaction")
        return self._undo

    def _set(self, rows: dict[_Key, _Row], key: _Key, row: _Row) -> None:
        if key in rows:
            self._log().append(partial(rows.__setitem__, key, rows[key]))
        else:
            self._log().append(partial(rows.__delitem__, key))
        rows[key] = row

    def _set_if(self, wanted: bool, rows: dict[_Key, _Row], key: _Key, row: _Row) -> None:  # noqa: FBT001
        if wanted:
            self._set(rows, key, row)
        elif key in rows:
            self._log().append(partial(rows.__setitem__, key, rows[key]))
            del rows[key]

    # --- the outbox

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        return self._identity

    def head(self) -> Head:
        """The last entry, or the genesis."""
        return self._head

    def append(self, entries: Sequence[Entry], checkpoint: Checkpoint) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        log = self._log()
        batch = check_batch(self._identity, self._head, entries, checkpoint)
        self._torn = True
        for item in batch:
            if (item.event, item.attempt) in self._attempts:
                raise StorageFailed(f"attempt {item.attempt} of {item.event} is in the outbox already")
            self._set(self._attempts, (item.event, item.attempt), item.entry.seq)
            for about in {item.event, item.corr or item.event}:
                self._set(self._about, about, (*self._about.get(about, ()), item.entry.seq))
            log.append(self._entries.pop)
            self._entries.append(item.entry)
        log.append(self._batches.pop)
        self._batches.append((checkpoint.seq, batch_bytes(entries)))
        self._set(self._checkpoints, checkpoint.seq, checkpoint)
        self._head = checkpoint.head
        self._torn = False

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream."""
        start = check_cursor(after, head=self._committed)
        first = bisect_right(self._batches, start, key=lambda batch: batch[0])
        batches = (batch for batch in self._batches[first:] if batch[0] <= self._committed.seq)
        end = page_end(start, batches, entries_max=entries_max, bytes_max=bytes_max)
        if end is None:
            return None
        return Page(self._identity.epoch, tuple(self._entries[start:end]), self._checkpoints[end])

    def events_about(self, event: EventId) -> list[tuple[Seq, bytes]]:
        """Bodies of own entries that are this event or refer to it, in order."""
        return [(seq, self._entries[seq - 1].body) for seq in self._about.get(event, ())]

    # --- the sender's side

    def delivery(self, event: EventId) -> Delivery | None:
        """The row of an own deliverable event."""
        return self._deliveries.get(event)

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        self._set(self._deliveries, row.event_id, row)
        self._set_if(row.next_at_ms is not None, self._timed, row.event_id, row)
        self._set_if(row.state is DeliveryState.EMITTED, self._emitted, row.event_id, row)

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        times = [(row.next_at_ms, row.event_id) for row in self._timed.values() if row.next_at_ms is not None]
        due = sorted(item for item in times if item[0] <= now_ms)
        return [self._deliveries[event] for _, event in due[:limit]]

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        times = [row.next_at_ms for row in self._timed.values() if row.next_at_ms is not None]
        return min(times, default=None)

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        rows = (row for row in self._emitted.values() if row.node == node and row.seq <= upto)
        found = [row for row in rows if row.emitted_at_ms <= emitted_before_ms]
        return sorted(found, key=lambda row: (row.seq, row.event_id))[:limit]

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        wanted = frozenset(states)
        found = [row for row in self._deliveries.values() if row.state in wanted]
        return sorted(found, key=lambda row: (row.created_at_ms, row.event_id), reverse=True)[:limit]

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return _counts(row.state for row in self._deliveries.values())

    # --- the receiver's side

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        return self._cursors.get(source)

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return dict(sorted(self._cursors.items()))

    def put_cursor(self, source: NodeId, head: Head) -> None:
        """Move it."""
        self._set(self._cursors, source, head)

    def received(self, event: EventId) -> Received | None:
        """The ledger row of an event that came for a local agent."""
        return self._received.get(event)

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        if row.event_id not in self._arrivals:
            self._set(self._arrivals, row.event_id, len(self._arrivals))
        self._set(self._received, row.event_id, row)
        self._set_if(row.state in _OPEN, self._open, row.event_id, row)

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance."""
        return sorted(self._open.values(), key=lambda row: self._arrivals[row.event_id])

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        rows = self._received.values() if done else self.open_turns()
        found = [row for row in rows if row.to_agent == agent]
        return found[max(0, len(found) - limit) :]

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return _counts(row.state for row in self._received.values())

    # --- the rest

    def remembered(self, agent: AgentId, key: str) -> Remembered | None:
        """What this agent used an idempotency key for."""
        return self._remembered.get((agent, key))

    def remember(self, row: Remembered) -> None:
        """Keep it."""
        self._set(self._remembered, (row.agent, row.key), row)

    def quarantine(self, row: Quarantined) -> None:
        """Keep an entry that is no valid event."""
        self._set(self._quarantined, (row.source, row.epoch, row.seq), row)

    def quarantined(self) -> list[Quarantined]:
        """All of them, in order of arrival."""
        return list(self._quarantined.values())

    def incident(self, kind: str, subject: str) -> Incident | None:
        """One incident, open or closed."""
        return self._incidents.get((kind, subject))

    def put_incident(self, row: Incident) -> None:
        """Insert or replace it."""
        self._set(self._incidents, (row.kind, row.subject), row)

    def incidents(self, *, open_only: bool) -> list[Incident]:
        """Incidents, oldest first."""
        found = [row for row in self._incidents.values() if row.closed_at_ms is None or not open_only]
        return sorted(found, key=lambda row: (row.opened_at_ms, row.kind, row.subject))

    def agents(self) -> list[LocalAgent]:
        """The agents that live here, by name."""
        return [row for _, row in sorted(self._agents.items())]

    def put_agent(self, row: LocalAgent) -> None:
        """Insert or replace one."""
        self._set(self._agents, row.name, row)

    def drop_agent(self, name: AgentId) -> None:
        """Forget one; an absent one is fine."""
        log = self._log()
        if name in self._agents:
            log.append(partial(self._agents.__setitem__, name, self._agents.pop(name)))


def _counts(states: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for state in states:
        found[state] = found.get(state, 0) + 1
    return found
