"""What goes through a stream and what comes out of it."""

import msgspec

from gateway.courier.limits import PRIORITIES
from outbox.errors import InvalidEvent


class Item(msgspec.Struct, frozen=True, gc=False):
    """One thing to hand over; its content stays with whoever offered it."""

    id: str
    priority: int
    """0 critical … 4 low."""
    ready_at_ms: int = 0
    """Not handed over before this monotonic time."""
    deliveries: int = 0
    """Hand-overs so far, the running one included."""

    def __post_init__(self) -> None:
        if not 0 <= self.priority < PRIORITIES:
            raise InvalidEvent(f"priority {self.priority} is out of 0-{PRIORITIES - 1}")


class HandOver(msgspec.Struct, frozen=True, gc=False):
    """An item that a subscriber is to be given now, under a lease."""

    subscriber: str
    stream: str
    item_id: str
    lease_id: str
    session: str | None
    delivery_count: int
    resumed: bool = False
    """The session had this lease before; it is the same delivery again, not a new one."""


class Pumped(msgspec.Struct, frozen=True):
    """What one pump decided."""

    hand_overs: list[HandOver]
    exhausted: list[tuple[str, Item]]
    """(stream, item): handed over ``max_deliveries`` times without an ack; no longer in the stream."""
