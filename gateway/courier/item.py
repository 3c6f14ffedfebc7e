"""What goes through a stream and what comes out of it."""

import msgspec

from gateway.courier.limits import PRIORITIES
from outbox.errors import InvalidEvent
from outbox.ids import AgentId, EventId, NodeId

ItemId = tuple[NodeId, EventId, AgentId]
"""Its source, its event and the agent that it is for: two nodes may send an event under one id, and
an event may be for several agents."""


class Lease(msgspec.Struct, frozen=True, gc=False):
    """That an item is in somebody's hands. When it ends stands in the courier's timers."""

    id: str
    session: str | None
    """It outlives its connection; without one the lease is the reader's."""
    reader: str | None = None
    """Of a reader without a session: who it is."""
    made: int = 0
    """How many times leases had been ended before (``gateway.courier.voids``)."""

    def answers_to(self, lease_id: str | None, session: str | None) -> bool:
        """Whether the caller names this lease; what is None is not looked at."""
        same_lease = lease_id is None or lease_id == self.id
        return same_lease and (session is None or session == self.session)


class Item(msgspec.Struct, gc=False):
    """One thing to hand over, as it stands; its content stays with whoever offered it."""

    id: ItemId
    priority: int
    """0 critical … 4 low."""
    ready_at_ms: int = 0
    """Not handed over before this monotonic time."""
    deliveries: int = 0
    """Hand-overs so far, the running one included."""
    place: int = 0
    """When it joined the line that it stands in, among the others of its stream."""

    def __post_init__(self) -> None:
        if not 0 <= self.priority < PRIORITIES:
            raise InvalidEvent(f"priority {self.priority} is out of 0-{PRIORITIES - 1}")


class HandOver(msgspec.Struct, frozen=True, gc=False):
    """An item that a subscriber is to be given now, under a lease."""

    subscriber: str
    stream: str
    item_id: ItemId
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
