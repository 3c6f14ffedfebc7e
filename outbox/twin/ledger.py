"""The ledger in memory."""

from collections.abc import Iterable
from itertools import count

from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Identity, Received, TurnState
from outbox.twin.transaction import Transaction, counts

_OPEN = frozenset({TurnState.HELD, TurnState.QUEUED, TurnState.LEASED})


class TwinLedger(Transaction):
    """``outbox.store.ledger`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._received: dict[tuple[NodeId, EventId], Received] = {}
        self._arrivals: dict[tuple[NodeId, EventId], int] = {}
        self._open: dict[tuple[NodeId, EventId], Received] = {}
        self._arrived = count()
        self._sources: dict[EventId, tuple[NodeId, ...]] = {}

    def received(self, source: NodeId, event: EventId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        return self._received.get((source, event))

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance."""
        return [self._received[source, event] for source in self._sources.get(event, ())]

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        key = (row.source, row.event_id)
        if key not in self._arrivals:
            self._set(self._arrivals, key, next(self._arrived))
            self._set(self._sources, row.event_id, (*self._sources.get(row.event_id, ()), row.source))
        self._set(self._received, key, row)
        self._set_if(row.state in _OPEN, self._open, key, row)

    def open_turns(self) -> list[Received]:
        """Rows that are held, queued or leased, in order of acceptance."""
        return self._in_order(self._open.values())

    def inbox(self, agent: AgentId, *, done: bool, limit: int) -> list[Received]:
        """An agent's newest rows, newest last: the unfinished ones, or with ``done`` all of them."""
        rows = self._received.values() if done else self._open.values()
        found = self._in_order(row for row in rows if row.to_agent == agent)
        return found[max(0, len(found) - limit) :]

    def _in_order(self, rows: Iterable[Received]) -> list[Received]:
        return sorted(rows, key=lambda row: self._arrivals[row.source, row.event_id])

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return counts(row.state for row in self._received.values())
