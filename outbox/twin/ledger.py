"""The ledger in memory."""

from collections.abc import Iterable
from itertools import count

from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Identity, Received, Share, TurnState
from outbox.twin.transaction import Transaction, counts

_Key = tuple[NodeId, EventId, AgentId]

_OPEN = frozenset({TurnState.HELD, TurnState.QUEUED, TurnState.LEASED})


def _expiry(row: Received) -> tuple[int, EventId, NodeId]:
    return row.expires_at_ms, row.event_id, row.source


class TwinLedger(Transaction):
    """``outbox.store.ledger`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._received: dict[_Key, Received] = {}
        self._arrivals: dict[_Key, int] = {}
        self._open: dict[_Key, Received] = {}
        self._arrived = count()
        self._keys: dict[EventId, tuple[_Key, ...]] = {}

    def received(self, source: NodeId, event: EventId, agent: AgentId) -> Received | None:
        """The row of an event that a node sent to a local agent."""
        return self._received.get((source, event, agent))

    def turns_of(self, source: NodeId, event: EventId) -> list[Received]:
        """The rows of all local agents that the event came for, in order of acceptance."""
        return [row for row in self.ledger(event) if row.source == source]

    def broadcasts(self, after: tuple[int, EventId, NodeId], limit: int) -> list[Received]:
        """Rows of broadcasts after a place, by expiry, event, source and acceptance."""
        shared = (row for row in self._received.values() if row.share in {Share.EVERYONE, Share.LATE})
        rows = self._in_order(row for row in shared if _expiry(row) > after)
        return sorted(rows, key=_expiry)[:limit]

    def ledger(self, event: EventId) -> list[Received]:
        """The rows of everybody who sent an event under this id, in order of acceptance."""
        return [self._received[key] for key in self._keys.get(event, ())]

    def put_received(self, row: Received) -> None:
        """Insert or replace it."""
        key = ledger_key(row)
        if key not in self._arrivals:
            self._set(self._arrivals, key, next(self._arrived))
            self._set(self._keys, row.event_id, (*self._keys.get(row.event_id, ()), key))
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

    def inbox_after(self, agent: AgentId, after: EventId, *, done: bool, limit: int) -> list[Received] | None:
        """The rows that were accepted next after an event's own, oldest first; None when there is no such."""
        mine = self._in_order(row for row in self._received.values() if row.to_agent == agent)
        places = [place for place, row in enumerate(mine) if row.event_id == after]
        if not places:
            return None
        open_ = {ledger_key(row) for row in self._open.values()}
        found = [row for row in mine[places[0] + 1 :] if done or ledger_key(row) in open_]
        return found[:limit]

    def _in_order(self, rows: Iterable[Received]) -> list[Received]:
        return sorted(rows, key=lambda row: self._arrivals[ledger_key(row)])

    def count_received(self) -> dict[str, int]:
        """Rows by state."""
        return counts(row.state for row in self._received.values())


def ledger_key(row: Received) -> _Key:
    """What tells one row from another."""
    return row.source, row.event_id, row.to_agent
