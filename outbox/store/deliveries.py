"""The sender's side: a row for each own deliverable event and each node that it went to."""

from collections.abc import Iterable
from typing import Protocol

from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import Delivery, DeliveryState


class DeliveryStore(Protocol):
    """Obligations of this node."""

    def delivery(self, event: EventId, node: NodeId | None) -> Delivery | None:
        """The row of an own deliverable event at one node, or at none."""
        ...

    def obligations(self, event: EventId) -> list[Delivery]:
        """All rows of an own deliverable event, in the order of their attempts."""
        ...

    def put_delivery(self, row: Delivery) -> None:
        """Insert or replace it."""
        ...

    def due_deliveries(self, now_ms: int, limit: int) -> list[Delivery]:
        """Rows whose ``next_at_ms`` has come, oldest first."""
        ...

    def quiet_until_ms(self) -> int | None:
        """A time before which no row is due, never too late; None when none will be."""
        ...

    def next_delivery_ms(self) -> int | None:
        """The earliest ``next_at_ms``."""
        ...

    def unanswered(self, node: NodeId, upto: Seq, emitted_before_ms: int, limit: int) -> list[Delivery]:
        """``emitted`` rows routed to a node at or below a position, emitted by that time, in order of seq."""
        ...

    def emitted_after(self, place: tuple[NodeId, Seq, EventId], limit: int) -> list[Delivery]:
        """``emitted`` rows after ``(node, seq, event)``, in that order."""
        ...

    def unaccepted(self, agent: AgentId, node: NodeId | None, limit: int) -> list[Delivery]:
        """``emitted`` and ``retry_pending`` rows for an agent that stand at a node, or at none, by seq."""
        ...

    def deliveries_in(
        self, state: DeliveryState, after: tuple[int, EventId, NodeId | None], limit: int
    ) -> list[Delivery]:
        """Rows in a state after ``(created_at_ms, event, node)``, oldest first."""
        ...

    def dead_letters(self, before: tuple[int, EventId], limit: int) -> list[Delivery]:
        """Dead letters that nobody dismissed, newest first, older than ``(created_at_ms, event)``."""
        ...

    def count_unaccepted(self) -> dict[NodeId | None, int]:
        """``emitted`` and ``retry_pending`` rows by where they stand."""
        ...

    def deliveries(self, states: Iterable[str], limit: int) -> list[Delivery]:
        """The newest rows in any of these states, newest (by ``created_at_ms``) first."""
        ...

    def deliveries_beyond(
        self, node: NodeId, seq: Seq, after: tuple[EventId, NodeId | None], looked_at: int
    ) -> tuple[list[Delivery], tuple[EventId, NodeId | None] | None]:
        """Of the next so many rows after ``(event, node)``: those at a node, of any state, with an attempt
        beyond a position of the own outbox, by event. And the last that was looked at; None at the end.
        """
        ...

    def count_deliveries(self) -> dict[str, int]:
        """Rows by state."""
        ...
