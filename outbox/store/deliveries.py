"""The sender's side: one row for each own deliverable event."""

from collections.abc import Iterable
from typing import Protocol

from outbox.ids import EventId, NodeId, Seq
from outbox.records import Delivery


class DeliveryStore(Protocol):
    """Obligations of this node."""

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
