"""Deliveries in memory."""

from collections.abc import Iterable

from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import Delivery, DeliveryState, Identity
from outbox.twin.transaction import Transaction, counts

_Key = tuple[EventId, NodeId | None]
_UNACCEPTED = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})


class TwinDeliveries(Transaction):
    """``outbox.store.deliveries`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._deliveries: dict[_Key, Delivery] = {}
        self._timed: dict[_Key, tuple[int, Delivery]] = {}
        """Those that wait for a time, with it."""
        self._unaccepted: dict[_Key, Delivery] = {}
        self._nodes: dict[EventId, tuple[NodeId | None, ...]] = {}

    def delivery(self, event: EventId, node: NodeId | None) -> Delivery | None:
        """The row of an own deliverable event at one node, or at none."""
        return self._deliveries.get((event, node))

    def obligations(self, event: EventId) -> list[Delivery]:
        """All rows of an own deliverable event, in the order of their attempts."""
        rows = [self._deliveries[event, node] for node in self._nodes.get(event, ())]
        return sorted(rows, key=lambda row: (row.attempt, row.node or ""))

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        key = (row.event_id, row.node)
        if key not in self._deliveries:
            self._set(self._nodes, row.event_id, (*self._nodes.get(row.event_id, ()), row.node))
        self._set(self._deliveries, key, row)
        self._set_if(row.next_at_ms is not None, self._timed, key, (row.next_at_ms or 0, row))
        self._set_if(row.state in _UNACCEPTED, self._unaccepted, key, row)

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        due = [item for item in self._timed.values() if item[0] <= now_ms]
        due.sort(key=lambda item: (item[0], item[1].event_id, item[1].node or ""))
        return [row for _, row in due[:limit]]

    def quiet_until_ms(self) -> int | None:
        """A time before which no row is due; None when none will be."""
        return self.next_delivery_ms()

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        return min([at_ms for at_ms, _ in self._timed.values()], default=None)

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        rows = (row for row in self._unaccepted.values() if row.state is DeliveryState.EMITTED)
        found = [row for row in rows if row.node == node and row.seq <= upto]
        return _by_seq(row for row in found if row.emitted_at_ms <= emitted_before_ms)[:limit]

    def emitted_after(self, place: tuple[NodeId, Seq, EventId], limit: int) -> list[Delivery]:
        """``emitted`` rows after ``(node, seq, event)``, in that order."""
        rows = [row for row in self._unaccepted.values() if row.state is DeliveryState.EMITTED]
        return sorted((row for row in rows if _stand(row) > place), key=_stand)[:limit]

    def unaccepted(self, agent: AgentId, node: NodeId | None, limit: int) -> list[Delivery]:
        """``emitted`` and ``retry_pending`` rows for an agent that stand at a node, or at none, by seq."""
        rows = self._unaccepted.values()
        return _by_seq(row for row in rows if (row.to_agent, row.node) == (agent, node))[:limit]

    def deliveries_in(
        self, state: DeliveryState, after: tuple[int, EventId, NodeId | None], limit: int
    ) -> list[Delivery]:
        """Rows in a state after ``(created_at_ms, event, node)``, oldest first."""
        place = (after[0], after[1], after[2] or "")
        found = [row for row in self._deliveries.values() if row.state is state and _place(row) > place]
        return sorted(found, key=_place)[:limit]

    def dead_letters(self, before: tuple[int, EventId], limit: int) -> list[Delivery]:
        """Dead letters that nobody dismissed, newest first, older than ``(created_at_ms, event)``."""
        rows = (row for row in self._deliveries.values() if row.state is DeliveryState.DEAD_LETTER)
        found = [row for row in rows if row.dismissed_at_ms is None and _age(row) < before]
        return sorted(found, key=_age, reverse=True)[:limit]

    def count_unaccepted(self) -> dict[NodeId | None, int]:
        """``emitted`` and ``retry_pending`` rows by where they stand."""
        found: dict[NodeId | None, int] = {}
        for row in self._unaccepted.values():
            found[row.node] = found.get(row.node, 0) + 1
        return found

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        wanted = frozenset(states)
        found = [row for row in self._deliveries.values() if row.state in wanted]
        return sorted(found, key=_place, reverse=True)[:limit]

    def deliveries_beyond(
        self, node: NodeId, seq: Seq, after: _Key, looked_at: int
    ) -> tuple[list[Delivery], _Key | None]:
        """Of the next rows after a key those at a node with an attempt beyond a position; the last key."""
        place = (after[0], after[1] or "")
        rows = sorted((row for row in self._deliveries.values() if _key(row) > place), key=_key)[:looked_at]
        last = (rows[-1].event_id, rows[-1].node) if len(rows) == looked_at else None
        return [row for row in rows if row.node == node and row.seq > seq], last

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return counts(row.state for row in self._deliveries.values())


def _key(row: Delivery) -> tuple[EventId, str]:
    return row.event_id, row.node or ""


def _stand(row: Delivery) -> tuple[NodeId, Seq, EventId]:
    return row.node or NodeId(""), row.seq, row.event_id


def _by_seq(rows: Iterable[Delivery]) -> list[Delivery]:
    return sorted(rows, key=lambda row: (row.seq, row.event_id))


def _age(row: Delivery) -> tuple[int, EventId]:
    return row.created_at_ms, row.event_id


def _place(row: Delivery) -> tuple[int, EventId, str]:
    return row.created_at_ms, row.event_id, row.node or ""
