"""Any order of calls: nothing lost, nothing twice in flight, nobody handed more than it granted."""

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.courier.courier import Courier
from gateway.courier.errors import Conflict, StreamFull, UnknownLease
from gateway.courier.halts import Halt
from gateway.courier.item import HandOver, Item, ItemId
from gateway.courier.limits import CourierLimits
from outbox.ids import AgentId, EventId, NodeId

LIMITS = CourierLimits(max_depth=12, lease_ms=100, max_deliveries=3, credit_max=20)
STREAMS = st.sampled_from(["one", "two"])
READERS = st.sampled_from(["r1", "r2", "r3", "r4"])
SOURCES = st.sampled_from([NodeId("a"), NodeId("b")])
SESSIONS = st.sampled_from(["phone", "laptop", None])


class CourierMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.courier = Courier(LIMITS)
        for stream in ("one", "two"):
            self.courier.open(stream)
        self.now_ms = 0
        self.ids = count(1)
        self.lease_ids = count(1)
        self.held: dict[tuple[str, ItemId], Item] = {}
        self.leased: dict[tuple[str, ItemId], HandOver] = {}
        self.expiry: dict[tuple[str, ItemId], int] = {}
        self.credit: dict[str, int] = {}
        self.reads: dict[str, tuple[str, str | None]] = {}
        self.straight: dict[tuple[str, int], list[ItemId]] = {}
        """Items never handed over, by stream and priority, as they were offered."""
        self.halts: dict[NodeId, Halt | None] = {}
        self.owed: dict[str, list[tuple[str, ItemId]]] = {}
        """What each reader is to be given again."""
        self.void: dict[tuple[str, ItemId], None] = {}
        """In nobody's hand, and not taken back yet."""

    @rule(stream=STREAMS, source=SOURCES, priority=st.integers(0, 4), delay=st.sampled_from([0, 0, 0, 40]))
    def offer(self, stream: str, source: NodeId, priority: int, delay: int) -> None:
        item_id = (source, EventId(f"e{next(self.ids)}"), AgentId(stream))
        item = Item(item_id, priority, self.now_ms + delay if delay else 0)
        of_stream = sum(name == stream for name, _ in self.held)
        if of_stream >= LIMITS.room_for(priority):
            assert not self.courier.has_room(stream, priority)
            with pytest.raises(StreamFull):
                self.courier.offer(stream, item, self.now_ms)
            return
        assert self.courier.has_room(stream, priority)
        self.courier.offer(stream, item, self.now_ms)
        self.held[stream, item.id] = item
        if not delay:
            self.straight.setdefault((stream, priority), []).append(item.id)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def offer_again(self, data: st.DataObject) -> None:
        stream, name = data.draw(st.sampled_from(sorted(self.held)))
        with pytest.raises((Conflict, StreamFull)):
            self.courier.offer(stream, Item(name, 0), self.now_ms)

    @rule(reader=READERS, stream=STREAMS, session=SESSIONS)
    def subscribe(self, reader: str, stream: str, session: str | None) -> None:
        if reader in self.reads:
            with pytest.raises(Conflict):
                self.courier.subscribe(reader, stream, session)
            return
        self.courier.subscribe(reader, stream, session)
        for other, place in list(self.reads.items()):
            if session is not None and place == (stream, session):
                del self.reads[other], self.credit[other], self.owed[other]
        self.reads[reader], self.credit[reader] = (stream, session), 0
        theirs = [key for key, given in self.leased.items() if (key[0], given.session) == (stream, session)]
        self.owed[reader] = [] if session is None else theirs

    @rule(reader=READERS)
    def unsubscribe(self, reader: str) -> None:
        self.courier.unsubscribe(reader, self.now_ms)
        stream_session = self.reads.pop(reader, None)
        self.credit.pop(reader, None)
        self.owed.pop(reader, None)
        if stream_session is not None and stream_session[1] is None:
            for key in [key for key, given in self.leased.items() if given.subscriber == reader]:
                self._unlease(key)

    @rule(reader=READERS, credit=st.integers(1, 15))
    def grant(self, reader: str, credit: int) -> None:
        if reader not in self.reads or self.credit[reader] + credit > LIMITS.credit_max:
            return
        self.courier.grant(reader, credit)
        self.credit[reader] += credit

    @precondition(lambda self: self.leased)
    @rule(data=st.data(), answer=st.sampled_from(["ack", "nack", "delayed nack", "extend", "wrong lease"]))
    def answer(self, data: st.DataObject, answer: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.leased)))
        given = self.leased[key]
        match answer:
            case "ack":
                assert self.courier.lease_of(*key) == given.lease_id
                self.courier.discard(*key)
                assert self.held.pop(key).deliveries == given.delivery_count
                self._unlease(key)
                with pytest.raises(UnknownLease):
                    self.courier.nack(*key, given.lease_id, given.session, 0, self.now_ms)
            case "nack":
                self.courier.nack(*key, given.lease_id, given.session, 0, self.now_ms)
                self._unlease(key)
            case "delayed nack":
                self.courier.nack(*key, given.lease_id, given.session, 60, self.now_ms)
                self._unlease(key)
            case "extend":
                self.expiry[key] = self.courier.extend(*key, given.lease_id, given.session, 200, self.now_ms)
                assert self.expiry[key] == self.now_ms + 200
            case _:
                with pytest.raises(UnknownLease):
                    self.courier.nack(*key, given.lease_id + "x", given.session, 0, self.now_ms)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.courier.discard(*key)
        for line in self.straight.values():
            if key[1] in line:
                line.remove(key[1])
        del self.held[key]
        self.void.pop(key, None)
        self._unlease(key)

    @rule(source=SOURCES)
    def end_leases(self, source: NodeId) -> None:
        """Whoever does that has halted the source, and lets it go on when all of it is taken back."""
        self.halt(source, Halt.ALL)
        in_hand = {*self.courier.end_leases([source])}
        theirs = [key for key in self.leased if key[1][0] == source]
        assert {key[1] for key in theirs} <= in_hand
        for key in theirs:
            self._unlease(key)
            self.void[key] = None

    @precondition(lambda self: self.void)
    @rule()
    def take_back(self) -> None:
        key = next(iter(self.void))
        del self.void[key]
        self.courier.take_back(*key, self.now_ms)

    @rule(source=SOURCES, how=st.sampled_from([None, None, Halt.NEW, Halt.ALL]))
    def halt(self, source: NodeId, how: Halt | None) -> None:
        while how is not Halt.ALL and any(key[1][0] == source for key in self.void):
            self.take_back()
        self.courier.halt(source, how, self.now_ms)
        self.halts[source] = how

    @rule(passed=st.sampled_from([0, 1, 30, 100, 250]), most=st.sampled_from([2, 1_000]))
    def pump(self, passed: int, most: int) -> None:
        self.now_ms += passed
        self._pump_once(most)
        while self.courier.can_deal or (self.courier.next_deadline_ms() or self.now_ms + 1) <= self.now_ms:
            self._pump_once(most)
        assert all(at_ms > self.now_ms for at_ms in self.expiry.values())
        for reader, owed in self.owed.items():
            session = self.reads[reader][1]
            assert not [key for key in owed if key in self.leased and self.leased[key].session == session]
            owed.clear()
        self._nobody_waits_beside_credit()

    def _pump_once(self, most: int) -> None:
        pumped = self.courier.pump(self.now_ms, lambda: f"l{next(self.lease_ids)}", most)
        for given in pumped.hand_overs:
            if given.resumed:
                self._given_again(given)
        for key in [key for key, at_ms in self.expiry.items() if at_ms <= self.now_ms]:
            if self.courier.lease_of(*key) != self.leased[key].lease_id:
                self._unlease(key)
        for stream, item in pumped.exhausted:
            assert item.deliveries == LIMITS.max_deliveries
            assert (stream, item.id) not in self.leased
            assert self.halts.get(item.id[0]) is not Halt.ALL
            del self.held[stream, item.id]
        for given in pumped.hand_overs:
            if not given.resumed:
                self._handed(given)
        assert len(pumped.hand_overs) <= most

    def _given_again(self, given: HandOver) -> None:
        """Once, the same delivery under the same lease, to who came back."""
        key = (given.stream, given.item_id)
        self.owed[given.subscriber].remove(key)
        before = self.leased[key]
        assert self.reads[given.subscriber] == (given.stream, given.session)
        assert (given.lease_id, given.session) == (before.lease_id, before.session)
        assert given.delivery_count == before.delivery_count
        self.leased[key], self.expiry[key] = given, self.now_ms + LIMITS.lease_ms

    def _handed(self, given: HandOver) -> None:
        key = (given.stream, given.item_id)
        assert key in self.held
        assert key not in self.leased
        assert self.reads[given.subscriber] == (given.stream, given.session)
        halt = self.halts.get(given.item_id[0])
        assert halt is None or (halt is Halt.NEW and given.delivery_count > 1)
        assert 1 <= given.delivery_count <= LIMITS.max_deliveries
        self.credit[given.subscriber] -= 1
        assert self.credit[given.subscriber] >= 0
        self.leased[key], self.expiry[key] = given, self.now_ms + LIMITS.lease_ms
        line = self.straight.get((given.stream, self.held[key].priority), [])
        if given.item_id in line:
            free = self._free(line)
            assert free[0] == given.item_id, "first come, first served within a priority"
            line.remove(given.item_id)

    def _free(self, line: list[ItemId]) -> list[ItemId]:
        return [item_id for item_id in line if self.halts.get(item_id[0]) is None]

    def _nobody_waits_beside_credit(self) -> None:
        for reader, (stream, _) in self.reads.items():
            if self.credit[reader]:
                assert not any(
                    self._free(line) for (name, _), line in self.straight.items() if name == stream
                )

    def _unlease(self, key: tuple[str, ItemId]) -> None:
        self.leased.pop(key, None)
        self.expiry.pop(key, None)

    @invariant()
    def every_item_is_accounted_for(self) -> None:
        assert {*self.courier.ids()} == {item_id for _, item_id in self.held}
        in_hand = [key for key in self.held if self.courier.lease_of(*key) is not None]
        assert sorted(in_hand) == sorted(self.leased)

    @invariant()
    def a_lease_has_a_deadline(self) -> None:
        if self.expiry:
            deadline = self.courier.next_deadline_ms()
            assert deadline is not None
            assert deadline <= min(self.expiry.values())

    def teardown(self) -> None:
        """Everything still held can be drained: nothing is stuck in a place without a way out."""
        for source in list(self.halts):
            self.halt(source, None)
        assert not self.void
        for reader in list(self.reads):
            self.unsubscribe(reader)
        self.now_ms += 1_000
        drained: set[tuple[str, ItemId]] = set()
        for stream in ("one", "two"):
            self.courier.subscribe(f"drain-{stream}", stream, None)
            self.courier.grant(f"drain-{stream}", LIMITS.credit_max)
        pumped = self.courier.pump(self.now_ms, lambda: f"l{next(self.lease_ids)}")
        drained.update((stream, item.id) for stream, item in pumped.exhausted)
        drained.update((given.stream, given.item_id) for given in pumped.hand_overs)
        assert drained == set(self.held)


TestCourierMachine = CourierMachine.TestCase
TestCourierMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
