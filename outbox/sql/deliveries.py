"""Deliveries in SQL."""

from collections.abc import Iterable

from outbox.ids import EventId, NodeId, Seq
from outbox.records import Delivery
from outbox.sql.rows import Asking, Writing
from outbox.tables import DELIVERIES


class DeliveryReads(Asking):
    """The questions of ``outbox.store.deliveries``."""

    def delivery(self, event: EventId) -> Delivery | None:
        """The row of an own deliverable event."""
        return self._rows.find(DELIVERIES, event)

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        clause = "WHERE next_at_ms <= ? ORDER BY next_at_ms, event_id LIMIT ?"
        return self._rows.all(DELIVERIES, clause, now_ms, limit)

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        return self._rows.least(DELIVERIES, "next_at_ms")

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node, up to a position and a time, in the order of the outbox."""
        clause = (
            "WHERE state = 'emitted' AND node = ? AND seq <= ? AND emitted_at_ms <= ?"
            " ORDER BY seq, event_id LIMIT ?"
        )
        return self._rows.all(DELIVERIES, clause, node, upto, emitted_before_ms, limit)

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest first."""
        wanted = [str(state) for state in states]
        marks = ", ".join("?" * len(wanted))
        clause = f"WHERE state IN ({marks}) ORDER BY created_at_ms DESC, event_id DESC LIMIT ?"
        return self._rows.all(DELIVERIES, clause, *wanted, limit)

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        return self._rows.counts(DELIVERIES, "state")


class DeliveryWrites(Writing, DeliveryReads):
    """What the writer adds."""

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        self._rows.put(DELIVERIES, row)
