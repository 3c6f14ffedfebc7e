"""One bounded queue with its readers and leases. Deadlines are kept by the courier, for all streams at once.

An item of a stream is in exactly one place::

    offered ──▶ delayed ──▶ waiting ──▶ in flight ──▶ acked
                   ▲           ▲            │
                   └─ nack ────┴── expired ─┴───────▶ exhausted, after max_deliveries

``discard`` takes it out of any of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

import msgspec

from gateway.courier.errors import Conflict, StreamFull, UnknownLease
from gateway.courier.item import HandOver, Item
from gateway.courier.leases import Holder, Lease, Leases, holder
from gateway.courier.limits import PRIORITIES, CourierLimits
from gateway.courier.stats import Counters, StreamStats
from gateway.courier.subscriptions import Ring
from gateway.courier.waiting import WaitingLine


class Stream:
    """The state of one stream."""

    def __init__(self, name: str, limits: CourierLimits) -> None:
        self.name = name
        self.waiting = WaitingLine()
        self.leases = Leases()
        self.ring = Ring()
        self.counters = Counters()
        self.kept_back: set[str] = set()
        """Items in a hand that are not dealt again when they come back."""
        self._room = [limits.room_for(priority) for priority in range(PRIORITIES)]
        self._held: OrderedDict[str, tuple[int, Item]] = OrderedDict()

    def has_room(self, priority: int) -> bool:
        """Whether one more item of this priority fits; the last share is kept for urgent ones."""
        return len(self._held) < self._room[priority]

    def check_room(self, priority: int) -> None:
        """Raises StreamFull."""
        if not self.has_room(priority):
            raise StreamFull(self.name, len(self._held))

    def hold(self, item: Item, now_ms: int) -> None:
        """Take responsibility for an item that came now. Raises Conflict when its id is here already."""
        if item.id in self._held:
            raise Conflict(f"{item.id!r} is in stream {self.name!r} already")
        self._held[item.id] = (now_ms, item)
        self.counters.offered += 1

    def item(self, item_id: str) -> Item | None:
        """An item as it stands: its hand-overs counted."""
        held = self._held.get(item_id)
        return held[1] if held else None

    def items(self) -> Iterator[Item]:
        """All that is held, oldest first."""
        return (item for _, item in self._held.values())

    def update(self, item: Item) -> None:
        """Note a change of a held item; its age stays."""
        self._held[item.id] = (self._held[item.id][0], item)

    def release(self, item_id: str) -> None:
        """Forget an item, wherever it is; an absent one is fine."""
        held = self._held.pop(item_id, None)
        if held is not None:
            self.waiting.leave(held[1])
            self.take_back(item_id)

    def take_back(self, item_id: str) -> bool:
        """End its lease, if it has one; whether it is free to be dealt again."""
        self.leases.end(item_id)
        free = item_id not in self.kept_back
        self.kept_back.discard(item_id)
        return free

    def lease(self, item_id: str, lease_id: str | None, session: str | None) -> Lease:
        """The live lease that the caller names. Raises UnknownLease."""
        lease = self.leases.get(item_id)
        if lease is None or not lease.answers_to(lease_id, session):
            raise UnknownLease(self.name, item_id)
        return lease

    def resume(self, subscriber: str, who: Holder) -> list[HandOver]:
        """The live leases of a session, for its new subscription."""
        return [self._hand_over(subscriber, lease, resumed=True) for lease in self.leases.of(who)]

    @property
    def can_deal(self) -> bool:
        """Whether something waits and somebody can take it."""
        return bool(self.ring and self.waiting)

    def deal(self, new_lease_id: Callable[[], str]) -> Iterator[HandOver]:
        """Hand out what waits, as far as credit goes: the delivery is counted before it is handed over."""
        while self.can_deal:
            item = self.waiting.take()
            item = msgspec.structs.replace(item, deliveries=item.deliveries + 1)
            self.update(item)
            reader = self.ring.spend()
            lease = Lease(new_lease_id(), item, holder(reader.session, reader.id))
            self.leases.add(lease)
            self.counters.handed += 1
            self.counters.redelivered += item.deliveries > 1
            yield self._hand_over(reader.id, lease, resumed=False)

    def stats(self) -> StreamStats:
        """Depth, totals and the age of the oldest item."""
        return StreamStats(
            depth=len(self._held) - len(self.leases),
            in_flight=len(self.leases),
            totals=msgspec.structs.replace(self.counters),
            oldest_at_ms=next(iter(self._held.values()))[0] if self._held else None,
        )

    def _hand_over(self, subscriber: str, lease: Lease, *, resumed: bool) -> HandOver:
        item, session = lease.item, lease.holder.session
        return HandOver(subscriber, self.name, item.id, lease.id, session, item.deliveries, resumed)
