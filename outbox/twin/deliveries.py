"""Deliveries in memory."""

from collections.abc import Iterable

from outbox.ids import EventId, NodeId, Seq
from outbox.records import Delivery, DeliveryState, Identity
from outbox.twin.transaction import Transaction, counts


class TwinDeliveries(Transaction):
    """``outbox.store.deliveries`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._deliveries: dict[EventId, Delivery] = {}
        self._timed: dict[EventId, Delivery] = {}
        self._emitted: dict[EventId, Delivery] = {}

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
        return counts(row.state for row in self._deliveries.values())
