"""One bounded queue with its readers and leases. Deadlines are kept by the courier, for all streams at once.

An item of a stream is in exactly one place::

    offered ──▶ delayed ──▶ waiting ──▶ in flight ──▶ acked
                   ▲           ▲            │
                   └─ nack ────┴── expired ─┴───────▶ exhausted, after max_deliveries

``discard`` takes it out of any of them. While its source is halted it stays where it waits.
"""

from collections import deque
from collections.abc import Callable

from gateway.courier.errors import Conflict, StreamFull, UnknownLease
from gateway.courier.halts import Halts
from gateway.courier.item import HandOver, Item, ItemId, Lease
from gateway.courier.limits import PRIORITIES, CourierLimits
from gateway.courier.subscriptions import Ring, Subscription
from gateway.courier.voids import Voids
from gateway.courier.waiting import WaitingLine


class Stream:
    """The state of one stream."""

    def __init__(self, name: str, limits: CourierLimits, halts: Halts, voids: Voids) -> None:
        self.name = name
        self._halts = halts
        self._voids = voids
        self.items: dict[ItemId, Item] = {}
        """All that is held, oldest first."""
        self.leased: dict[ItemId, Lease] = {}
        """What is in somebody's hands, oldest lease first; also what is in none since its lease is void."""
        self._resuming: dict[str, tuple[Subscription, deque[ItemId]]] = {}
        """By reader: what was in hands when it came, of which it is given again what its session has."""
        self.waiting = WaitingLine()
        self.ring = Ring()
        self._room = [limits.room_for(priority) for priority in range(PRIORITIES)]

    def has_room(self, priority: int) -> bool:
        """Whether one more item of this priority fits; the last share is kept for urgent ones."""
        return len(self.items) < self._room[priority]

    def check_room(self, priority: int) -> None:
        """Raises StreamFull."""
        if not self.has_room(priority):
            raise StreamFull(self.name, len(self.items))

    def hold(self, item: Item) -> None:
        """Take responsibility for an item. Raises Conflict when its id is here already."""
        if item.id in self.items:
            raise Conflict(f"{item.id!r} is in stream {self.name!r} already")
        self.items[item.id] = item

    def release(self, item_id: ItemId) -> None:
        """Forget an item, wherever it is; an absent one is fine."""
        item = self.items.pop(item_id, None)
        if item is not None and self.leased.pop(item_id, None) is None:
            self.waiting.leave(item)

    def take_back(self, item: Item) -> None:
        """End its lease, if it has one."""
        self.leased.pop(item.id, None)

    def lease(self, item_id: ItemId, lease_id: str | None, session: str | None) -> Item:
        """The item whose live lease the caller names. Raises UnknownLease."""
        lease = self.lease_on(item_id)
        if lease is None or not lease.answers_to(lease_id, session):
            raise UnknownLease(self.name, item_id[1])
        return self.items[item_id]

    def lease_on(self, item_id: ItemId) -> Lease | None:
        """The lease on an item that is in a hand."""
        lease = self.leased.get(item_id)
        if lease is not None and self._voids and self._voids.has(item_id[0], lease):
            return None
        return lease

    def of_reader(self, reader: str) -> list[Item]:
        """What a reader without a session has in hand, oldest lease first."""
        return [self.items[item_id] for item_id, lease in self.leased.items() if lease.reader == reader]

    def resume(self, reader: Subscription) -> None:
        """Give a new subscription the live leases of its session, oldest first, with ``give_again``."""
        if reader.session is not None and self.leased:
            reader.is_resuming = True
            self._resuming[reader.id] = reader, deque(self.leased)

    def leave(self, reader: Subscription) -> None:
        """It reads no more."""
        self._resuming.pop(reader.id, None)
        self.ring.leave(reader)

    @property
    def is_resuming(self) -> bool:
        """Whether somebody is still to be given what it has."""
        return bool(self._resuming)

    @property
    def can_deal(self) -> bool:
        """Whether something waits and somebody can take it."""
        return bool(self.ring.turns and self.waiting)

    def deal(self, new_lease_id: Callable[[], str], most: int) -> tuple[list[HandOver], int]:
        """Hand out what waits, as far as credit goes: the delivery is counted before it is handed over.

        Looks at no more items than ``most``; returns also at how many.
        """
        dealt: list[HandOver] = []
        passed = 0
        while len(dealt) + passed < most:
            item = self.waiting.take() if self.ring.turns else None
            if item is None:
                break
            if self._halts and self._halts.stop(item):
                self.waiting.set_aside(item)
                passed += 1
                continue
            reader = self.ring.spend()
            item.deliveries += 1
            mine = reader.id if reader.session is None else None
            lease = Lease(new_lease_id(), reader.session, mine, self._voids.times)
            self.leased[item.id] = lease
            dealt.append(HandOver(reader.id, self.name, item.id, lease.id, reader.session, item.deliveries))
        return dealt, len(dealt) + passed

    def give_again(self, most: int) -> tuple[list[HandOver], int]:
        """Hand out what sessions that came back have, as ``deal`` does what waits."""
        given: list[HandOver] = []
        looked_at = 0
        for reader, left in list(self._resuming.values()):
            while left and looked_at < most:
                looked_at += 1
                again = self._again(reader, left.popleft())
                if again is not None:
                    given.append(again)
            if not left:
                del self._resuming[reader.id]
                self.ring.resumed(reader)
        return given, looked_at

    def _again(self, reader: Subscription, item_id: ItemId) -> HandOver | None:
        lease = self.lease_on(item_id)
        if lease is None or lease.session != reader.session:
            return None
        count = self.items[item_id].deliveries
        return HandOver(reader.id, self.name, item_id, lease.id, lease.session, count, resumed=True)
