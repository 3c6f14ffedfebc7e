"""All streams of a gateway behind one face: what comes in, what is handed over, what is due when.

Rules (``docs/PROTOCOL.md``, local delivery):

- Nothing is dropped or overwritten: a full stream refuses.
- A reader starts without credit and is never handed more than it granted.
- A lease lives until the ``pump`` at or after its expiry; an answer that comes before that pump still counts,
  since nobody else was handed the item. Expiry and ``nack`` put the item at the tail of its priority.
- A lease belongs to the reader's session and outlives its connection; a reader without a session loses its
  leases when it leaves.
- Times are milliseconds of the monotonic clock.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from gateway.courier.errors import Conflict, InvalidCredit, UnknownStream
from gateway.courier.halts import Halt, Halts
from gateway.courier.item import HandOver, Item, ItemId, Lease, Pumped
from gateway.courier.limits import DEALT_MAX, CourierLimits
from gateway.courier.stream import Stream
from gateway.courier.subscriptions import Subscription
from gateway.courier.timers import Timers
from gateway.courier.voids import Voids
from outbox.ids import NodeId


class Courier:
    """Streams, their readers and one set of timers. No step looks at streams in which nothing changed."""

    def __init__(self, limits: CourierLimits) -> None:
        self._limits = limits
        self._streams: dict[str, Stream] = {}
        self._readers: dict[str, Subscription] = {}
        self._sessions: dict[tuple[str, str], Subscription] = {}
        self._timers: Timers[tuple[str, ItemId]] = Timers()
        self._dirty: dict[str, Stream] = {}
        self._back: dict[str, Stream] = {}
        """With sessions that came back and are still to be given what they have."""
        self._halts = Halts()
        self._voids = Voids()
        self._spent: dict[NodeId, dict[tuple[str, ItemId], None]] = {}
        """Items of halted sources that have had their deliveries."""

    # --- what comes in

    def open(self, stream: str) -> None:
        """Make a stream that can be subscribed to before anything was offered; again is fine."""
        self._made(stream)

    def has_room(self, stream: str, priority: int) -> bool:
        """Whether ``offer`` would find room."""
        known = self._streams.get(stream)
        return known.has_room(priority) if known else self._limits.room_for(priority) > 0

    def check_room(self, stream: str, priority: int) -> None:
        """Raises StreamFull when ``offer`` would."""
        known = self._streams.get(stream)
        if known is not None:
            known.check_room(priority)

    def leased(self, stream: str, at_most: int) -> list[ItemId]:
        """Items in flight, oldest first; none when there are more than so many."""
        known = self._streams.get(stream)
        if known is None or len(known.leased) > at_most:
            return []
        return [item_id for item_id in known.leased if known.lease_on(item_id) is not None]

    def items(self, stream: str) -> list[Item]:
        """Everything that a stream holds, in flight or not; nothing of an unknown one."""
        known = self._streams.get(stream)
        return list(known.items.values()) if known is not None else []

    def ids(self) -> list[ItemId]:
        """The ids of all that is here, those of one stream together."""
        found: list[ItemId] = []
        for stream in self._streams.values():
            found += stream.items
        return found

    def end_leases(self, sources: Iterable[NodeId]) -> list[ItemId]:
        """Nobody has what is in hands of these sources, from now on; the ids of all that are in any.

        That is copied, and nothing is done with each: ``take_back`` does that, in parts.
        """
        for source in sources:
            self._voids.end(source)
        found: list[ItemId] = []
        for stream in self._streams.values():
            found += stream.leased
        return found

    def take_back(self, stream: str, item_id: ItemId, now_ms: int) -> None:
        """Queue an item whose lease was ended so; one that is in a hand, or in none, is fine."""
        target = self._streams.get(stream)
        if target is not None and item_id in target.leased and target.lease_on(item_id) is None:
            self._return(target, target.items[item_id], now_ms, now_ms)

    def offer(self, stream: str, item: Item, now_ms: int) -> None:
        """Queue an item; an unknown stream is made. Raises StreamFull; Conflict while its id is here."""
        self._made(stream).check_room(item.priority)
        self.readmit(stream, item, now_ms)

    def readmit(self, stream: str, item: Item, now_ms: int) -> None:
        """Queue an item that was accepted before a restart: the bound was judged then. Raises Conflict."""
        target = self._made(stream)
        target.hold(item)
        self._queue(target, item, item.ready_at_ms, now_ms)

    def withhold(self, stream: str, item_id: ItemId) -> None:
        """Let an item wait for ``let_go``; it still counts. One that is gone, or in a hand, is fine."""
        target = self._streams.get(stream)
        item = target.items.get(item_id) if target is not None else None
        if target is not None and item is not None and item_id not in target.leased:
            self._timers.cancel((stream, item_id))
            target.waiting.leave(item)

    def let_go(self, stream: str, item_id: ItemId, now_ms: int) -> None:
        """Deal an item again that was withheld; one that is gone, or in a hand, is fine."""
        target = self._streams.get(stream)
        item = target.items.get(item_id) if target is not None else None
        if target is not None and item is not None and item_id not in target.leased:
            self._queue(target, item, item.ready_at_ms, now_ms)

    def halt(self, source: NodeId, how: Halt | None, now_ms: int) -> None:
        """Deal nothing of a source, or nothing new, or with None all again. It still counts.

        What is in a hand stays there, and waits as well when it comes back. What is dealt again stands where
        it stood.
        """
        if not self._halts.set(source, how):
            return
        for name, item_id in self._spent.pop(source, ()):
            self._timers.set((name, item_id), now_ms)
        for stream in self._streams.values():
            stream.waiting.give_back(source)
            self._touch(stream)

    def restore(self, stream: str, item: Item, lease_id: str, session: str, now_ms: int) -> None:
        """Take back a lease that survived a restart, with its full term again. Raises Conflict."""
        target = self._made(stream)
        target.hold(item)
        target.leased[item.id] = Lease(lease_id, session, made=self._voids.times)
        self._timers.set((stream, item.id), now_ms + self._limits.lease_ms)

    # --- readers

    def subscribe(self, subscriber: str, stream: str, session: str | None) -> None:
        """Start reading, without credit. The next pumps hand over the session's live leases, which cost none.

        A session has one subscription a stream: a new one takes the old one's place, since the end of a
        half-open connection may not have been noticed yet.
        Raises UnknownStream; Conflict when the subscriber's id is in use.
        """
        target = self._known(stream)
        if subscriber in self._readers:
            raise Conflict(f"subscriber {subscriber!r} exists already")
        reader = Subscription(subscriber, stream, session)
        if session is not None:
            before = self._sessions.get((stream, session))
            if before is not None:
                self._drop(before)
            self._sessions[stream, session] = reader
        self._readers[subscriber] = reader
        target.resume(reader)
        if target.is_resuming:
            self._back[stream] = target

    def unsubscribe(self, subscriber: str, now_ms: int) -> None:
        """Stop reading: a session's leases stay until they run out, others return at once. Again is fine."""
        reader = self._readers.get(subscriber)
        if reader is None:
            return
        self._drop(reader)
        stream = self._streams[reader.stream]
        for item in stream.of_reader(subscriber):
            self._return(stream, item, now_ms, now_ms)

    def grant(self, subscriber: str, credit: int) -> None:
        """Allow so many more hand-overs.

        Raises InvalidCredit unless it is a positive ``int`` (no bool, no float) that keeps the unused credit
        within ``credit_max``; Conflict when the subscription is gone.
        """
        limit = self._limits.credit_max
        if type(credit) is not int or credit < 1:
            raise InvalidCredit("credit is not a positive whole number", limit)
        reader = self._readers.get(subscriber)
        if reader is None:
            raise Conflict(
                f"subscriber {subscriber!r} is gone", hint="it left, or its session subscribed anew elsewhere"
            )
        if reader.credit + credit > limit:
            raise InvalidCredit(f"unused credit would be above {limit}", limit)
        stream = self._streams[reader.stream]
        stream.ring.grant(reader, credit)
        self._touch(stream)

    # --- answers; ``lease_id`` and ``session`` are checked when given

    def nack(  # noqa: PLR0917 - the fields of the answer, in their order
        self,
        stream: str,
        item_id: ItemId,
        lease_id: str | None,
        session: str | None,
        delay_ms: int,
        now_ms: int,
    ) -> None:
        """Put the item back at the tail, after a delay of 0 to ``delay_ms_max``; outside that it is cut.

        Raises UnknownStream, UnknownLease.
        """
        target = self._known(stream)
        item = target.lease(item_id, lease_id, session)
        delay_ms = min(max(delay_ms, 0), self._limits.delay_ms_max)
        self._return(target, item, now_ms + delay_ms, now_ms)

    def extend(  # noqa: PLR0917 - as above
        self,
        stream: str,
        item_id: ItemId,
        lease_id: str | None,
        session: str | None,
        lease_ms: int,
        now_ms: int,
    ) -> int:
        """Let the lease run for 1 to ``lease_ms_max`` from now, cut to that; returns its new expiry.

        Raises UnknownStream, UnknownLease.
        """
        self._known(stream).lease(item_id, lease_id, session)
        expires_at_ms = now_ms + min(max(lease_ms, 1), self._limits.lease_ms_max)
        self._timers.set((stream, item_id), expires_at_ms)
        return expires_at_ms

    def lease_of(self, stream: str, item_id: ItemId) -> str | None:
        """The id of the live lease on an item, or None."""
        target = self._streams.get(stream)
        lease = target.lease_on(item_id) if target is not None else None
        return lease.id if lease is not None else None

    def discard(self, stream: str, item_id: ItemId) -> None:
        """The item is done with, or was cancelled elsewhere, leased or not; an absent one is fine."""
        target = self._streams.get(stream)
        if target is not None:
            self._timers.cancel((stream, item_id))
            if item_id[0] in self._spent:
                self._spent[item_id[0]].pop((stream, item_id), None)
            target.release(item_id)

    # --- what goes out

    def pump(self, now_ms: int, new_lease_id: Callable[[], str], most: int = DEALT_MAX) -> Pumped:
        """End what is due, then deal what waits to whoever has credit; no more of either than ``most``.

        Whoever came back is given first what it had, each for a full lease again.
        """
        hand_overs: list[HandOver] = []
        exhausted: list[tuple[str, Item]] = []
        left = most
        if self._back:  # before their leases run out: that they came back in time counts
            left -= self._give_again(hand_overs, most, now_ms)
        for name, item_id in islice(self._timers.pop_due(now_ms), most):
            self._due(self._streams[name], item_id, exhausted)
        dirty, self._dirty = self._dirty, {}
        for stream in dirty.values():
            dealt, looked_at = stream.deal(new_lease_id, left)
            left -= looked_at
            for hand_over in dealt:
                self._timers.set((stream.name, hand_over.item_id), now_ms + self._limits.lease_ms)
            hand_overs += dealt
        waiting = [stream for stream in dirty.values() if stream.can_deal]
        for stream in reversed(waiting):  # who had nothing of this pump is first in the next
            self._touch(stream)
        return Pumped(hand_overs, exhausted)

    def _give_again(self, hand_overs: list[HandOver], most: int, now_ms: int) -> int:
        """To sessions that came back, what they have; how many items were looked at."""
        left = most
        for stream in list(self._back.values()):
            given, looked_at = stream.give_again(left)
            left -= looked_at
            for hand_over in given:
                self._timers.set((stream.name, hand_over.item_id), now_ms + self._limits.lease_ms)
            hand_overs += given
            if not stream.is_resuming:
                del self._back[stream.name]
                self._touch(stream)
        return most - left

    @property
    def can_deal(self) -> bool:
        """Whether the next pump has something to hand over, whatever the time."""
        return bool(self._back) or any(stream.can_deal for stream in self._dirty.values())

    def next_deadline_ms(self) -> int | None:
        """When the next pump is needed even if nothing else happens."""
        return self._timers.next_ms()

    # --- steps

    def _known(self, name: str) -> Stream:
        stream = self._streams.get(name)
        if stream is None:
            raise UnknownStream(name)
        return stream

    def _made(self, name: str) -> Stream:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, self._limits, self._halts, self._voids)
        return stream

    def _touch(self, stream: Stream) -> None:
        self._dirty[stream.name] = stream

    def _drop(self, reader: Subscription) -> None:
        del self._readers[reader.id]
        if reader.session is not None:
            del self._sessions[reader.stream, reader.session]
        self._streams[reader.stream].leave(reader)

    def _queue(self, stream: Stream, item: Item, ready_at_ms: int, now_ms: int) -> None:
        """Let an item wait; one that has had its deliveries, or comes later, gets a timer instead."""
        if item.deliveries >= self._limits.max_deliveries:
            self._timers.set((stream.name, item.id), now_ms)
        elif ready_at_ms > now_ms:
            self._timers.set((stream.name, item.id), ready_at_ms)
        else:
            stream.waiting.join(item)
            self._touch(stream)

    def _return(self, stream: Stream, item: Item, ready_at_ms: int, now_ms: int) -> None:
        self._timers.cancel((stream.name, item.id))
        stream.take_back(item)
        self._queue(stream, item, ready_at_ms, now_ms)

    def _due(self, stream: Stream, item_id: ItemId, exhausted: list[tuple[str, Item]]) -> None:
        """A lease ran out, a delay is over, or the deliveries are used up."""
        item = stream.items[item_id]
        stream.take_back(item)
        if item.deliveries < self._limits.max_deliveries:
            stream.waiting.join(item)
            self._touch(stream)
        elif self._halts and self._halts.stop(item):
            self._spent.setdefault(item_id[0], {})[stream.name, item_id] = None
        else:
            stream.release(item_id)
            exhausted.append((stream.name, item))
