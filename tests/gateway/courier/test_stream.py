import pytest

from gateway.courier.errors import Conflict, StreamFull, UnknownLease
from gateway.courier.halts import Halt, Halts
from gateway.courier.item import HandOver, Item, ItemId
from gateway.courier.limits import CourierLimits
from gateway.courier.stream import Stream
from gateway.courier.subscriptions import Subscription
from gateway.courier.voids import Voids
from outbox.ids import AgentId, EventId, NodeId

PHONE = Subscription("new", "s", "phone")


def key(name: str) -> ItemId:
    return NodeId("a"), EventId(name), AgentId("jen")


def stream_with(*names: str, max_depth: int = 10, halts: Halts | None = None) -> Stream:
    stream = Stream("s", CourierLimits(max_depth=max_depth), halts or Halts(), Voids())
    for name in names:
        item = Item(key(name), 2)
        stream.hold(item)
        stream.waiting.join(item)
    return stream


def test_dealing_counts_the_delivery_before_the_hand_over() -> None:
    stream = stream_with("a")
    stream.ring.grant(Subscription("sub", "s", "phone"), 5)
    assert stream.deal(lambda: "l1", 9) == ([HandOver("sub", "s", key("a"), "l1", "phone", 1)], 1)
    assert stream.items[key("a")].deliveries == 1


@pytest.mark.parametrize(("credit", "most"), [(1, 9), (9, 1)])
def test_dealing_stops_where_credit_ends_and_at_its_bound(credit: int, most: int) -> None:
    stream = stream_with("a", "b")
    stream.ring.grant(Subscription("sub", "s", "phone"), credit)
    dealt, looked_at = stream.deal(lambda: "l", most)
    assert ([given.item_id for given in dealt], looked_at) == ([key("a")], 1)
    assert stream.waiting
    assert stream.can_deal is (credit > 1)


def test_what_is_halted_is_looked_at_once_and_counts() -> None:
    halts = Halts()
    halts.set(NodeId("a"), Halt.NEW)
    stream = stream_with("a", "b", "c", halts=halts)
    stream.ring.grant(Subscription("sub", "s", "phone"), 9)
    assert [stream.deal(lambda: "l", 2) for _ in range(3)] == [([], 2), ([], 1), ([], 0)]
    assert not stream.can_deal
    halts.set(NodeId("a"), None)
    stream.waiting.give_back(NodeId("a"))
    assert stream.can_deal
    dealt, _ = stream.deal(lambda: "l", 9)
    assert [given.item_id for given in dealt] == [key("a"), key("b"), key("c")]


def test_a_resumed_lease_is_the_same_delivery() -> None:
    stream = stream_with("a")
    stream.ring.grant(Subscription("old", "s", "phone"), 1)
    stream.deal(lambda: "l1", 9)
    stream.resume(Subscription("other", "s", "laptop"))
    assert stream.give_again(9) == ([], 1)
    stream.resume(PHONE)
    assert stream.give_again(9) == ([HandOver("new", "s", key("a"), "l1", "phone", 1, resumed=True)], 1)
    assert not stream.can_deal


def test_a_reader_without_a_session_has_its_leases_to_itself() -> None:
    stream = stream_with("a", "b", "c")
    for reader in ("one", "other"):
        stream.ring.grant(Subscription(reader, "s", None), 2)
    stream.deal(lambda: "l1", 9)
    assert [item.id for item in stream.of_reader("one")] == [key("a"), key("c")]
    stream.resume(Subscription("one", "s", None))
    assert stream.give_again(9) == ([], 0)
    stream.release(key("a"))
    stream.take_back(stream.items[key("c")])
    assert stream.of_reader("one") == []


def test_an_id_that_is_held_is_refused() -> None:
    with pytest.raises(Conflict):
        stream_with("a").hold(Item(key("a"), 0))


def test_a_full_stream_says_so_and_still_takes_urgent_ones() -> None:
    stream = stream_with(*"abcdefghi")
    with pytest.raises(StreamFull, match="9 items"):
        stream.check_room(2)
    stream.check_room(1)


def test_only_the_live_lease_is_found() -> None:
    stream = stream_with("a")
    with pytest.raises(UnknownLease):
        stream.lease(key("a"), None, None)


def test_what_is_released_is_nowhere_whether_it_waits_or_is_in_a_hand() -> None:
    stream = stream_with("a", "b", "c")
    stream.ring.grant(Subscription("sub", "s", "phone"), 1)
    stream.deal(lambda: "l1", 9)
    for name in ("a", "a", "b"):
        stream.release(key(name))
    stream.ring.grant(Subscription("sub", "s", "phone"), 9)
    dealt, _ = stream.deal(lambda: "l2", 9)
    assert [given.item_id for given in dealt] == [key("c")]
    assert list(stream.items) == list(stream.leased) == [key("c")]
