import pytest

from gateway.courier.errors import Conflict, StreamFull, UnknownLease
from gateway.courier.item import HandOver, Item
from gateway.courier.leases import Holder
from gateway.courier.limits import CourierLimits
from gateway.courier.stream import Stream
from gateway.courier.subscriptions import Subscription


def stream_with(*names: str, max_depth: int = 10) -> Stream:
    stream = Stream("s", CourierLimits(max_depth=max_depth))
    for at_ms, name in enumerate(names):
        stream.hold(Item(name, 2), at_ms)
        stream.waiting.join(Item(name, 2))
    return stream


def test_dealing_counts_the_delivery_before_the_hand_over() -> None:
    stream = stream_with("a")
    stream.ring.grant(Subscription("sub", "s", "phone"), 5)
    assert list(stream.deal(lambda: "l1")) == [HandOver("sub", "s", "a", "l1", "phone", 1)]
    assert stream.item("a") == Item("a", 2, deliveries=1)


def test_dealing_stops_where_credit_ends() -> None:
    stream = stream_with("a", "b")
    stream.ring.grant(Subscription("sub", "s", "phone"), 1)
    assert [given.item_id for given in stream.deal(lambda: "l")] == ["a"]
    assert stream.waiting


def test_a_resumed_lease_is_the_same_delivery() -> None:
    stream = stream_with("a")
    stream.ring.grant(Subscription("old", "s", "phone"), 1)
    list(stream.deal(lambda: "l1"))
    again = stream.resume("new", Holder("phone", None))
    assert again == [HandOver("new", "s", "a", "l1", "phone", 1, resumed=True)]
    assert stream.resume("new", Holder("laptop", None)) == []


def test_an_id_that_is_held_is_refused() -> None:
    with pytest.raises(Conflict):
        stream_with("a").hold(Item("a", 0), 9)


def test_a_full_stream_says_so_and_still_takes_urgent_ones() -> None:
    stream = stream_with(*"abcdefghi")
    with pytest.raises(StreamFull, match="9 items"):
        stream.check_room(2)
    stream.check_room(1)


def test_only_the_live_lease_is_found() -> None:
    stream = stream_with("a")
    with pytest.raises(UnknownLease):
        stream.lease("a", None, None)


def test_stats_tell_waiting_from_in_flight_and_know_the_oldest() -> None:
    stream = stream_with("a", "b", "c")
    stream.ring.grant(Subscription("sub", "s", "phone"), 1)
    list(stream.deal(lambda: "l1"))
    stats = stream.stats()
    assert (stats.depth, stats.in_flight, stats.oldest_at_ms) == (2, 1, 0)
    stream.release("a")
    stream.release("a")
    assert stream.stats().oldest_at_ms == 1
    assert (stats.totals.offered, stats.totals.handed, stats.totals.redelivered) == (3, 1, 0)
