"""What a link advertises is waited for until it is read, or until the link is gone."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.effects import CaughtUp
from gateway.engine.inputs import ClockMeasured, LinkDown, LinkUp, StreamHead
from gateway.engine.peers import Peers, reached
from outbox.chain import Head
from outbox.ids import Epoch, Seq

EPOCH = Epoch("000001-0123456789ab")
LATER = Epoch("000002-0123456789ab")


def up(peer: str, **heads: int) -> LinkUp:
    return LinkUp(peer, tuple(StreamHead(node, EPOCH, Seq(seq)) for node, seq in heads.items()))


def at(seq: int, epoch: Epoch = EPOCH) -> Head:
    return Head(epoch, Seq(seq), b"")


def test_a_stream_is_behind_until_its_advertised_head_is_read() -> None:
    peers = Peers()
    peers.up(up("b", b=3, c=2), {"c": at(2)})
    assert (peers.is_behind("b"), peers.is_behind("c")) == (True, False)
    assert not peers.moved("b", at(2))
    assert peers.moved("b", at(3))
    assert not peers.is_behind("b")
    assert not peers.moved("b", at(4))


def test_every_link_that_is_up_counts() -> None:
    peers = Peers()
    peers.up(up("b", b=3), {})
    peers.up(up("c", b=9), {})
    assert not peers.moved("b", at(5))
    assert peers.down("c") == ["b"]
    assert not peers.is_behind("b")


def test_what_grows_while_the_link_is_up_is_not_waited_for() -> None:
    peers = Peers()
    assert peers.up(up("b", b=3), {}) == {"b"}
    assert peers.up(up("b", b=9), {}) == set()
    assert peers.moved("b", at(3))
    assert peers.up(up("b", b=9, c=1), {"b": at(3)}) == {"c"}
    assert not peers.is_behind("b")
    assert peers.down("b") == ["c"]
    assert peers.up(up("b", b=9), {"b": at(3)}) == {"b"}


def test_an_empty_stream_and_a_later_epoch_are_reached() -> None:
    assert reached(None, StreamHead("b", EPOCH, Seq(0)))
    assert not reached(None, StreamHead("b", EPOCH, Seq(1)))
    assert reached(at(0, LATER), StreamHead("b", EPOCH, Seq(7)))
    assert not reached(at(9), StreamHead("b", LATER, Seq(1)))


def test_a_clock_counts_as_right_until_it_is_measured() -> None:
    peers = Peers()
    assert peers.clock_offset_ms("b") == 0
    peers.measured(ClockMeasured("b", -70, 5))
    assert peers.clock_offset_ms("b") == -70


def test_a_slow_link_makes_nobody_forget_a_clock_known_more_exactly() -> None:
    peers = Peers()
    peers.measured(ClockMeasured("b", 7, 82))
    peers.measured(ClockMeasured("b", -1149, 1205))
    assert peers.clock_offset_ms("b") == 7, "both may be right, and the first says more"
    peers.measured(ClockMeasured("b", 2, 82))
    assert peers.clock_offset_ms("b") == 2, "no less exact, and newer"
    peers.measured(ClockMeasured("b", -1300, 1205))
    assert peers.clock_offset_ms("b") == -1300, "the clock was set"


@given(st.integers(-(10**6), 10**6), st.lists(st.tuples(st.integers(0, 9_000), st.floats(-1, 1)), min_size=1))
def test_a_steady_clock_is_known_as_exactly_as_its_best_measurement(
    ahead_ms: int, measured: list[tuple[int, float]]
) -> None:
    peers = Peers()
    for within_ms, wrong in measured:
        peers.measured(ClockMeasured("b", ahead_ms + int(wrong * within_ms), within_ms))
    best_ms = min(within_ms for within_ms, _ in measured)
    assert abs(peers.clock_offset_ms("b") - ahead_ms) <= best_ms


@given(st.lists(st.tuples(st.sampled_from("bcd"), st.integers(0, 9)), max_size=12), st.integers(0, 9))
def test_nobody_is_behind_what_no_link_advertises(told: list[tuple[str, int]], read: int) -> None:
    peers = Peers()
    for peer, seq in told:
        peers.up(up(peer, x=seq), {"x": at(read)})
    at_first = dict(reversed(told))
    assert peers.is_behind("x") == any(seq > read for seq in at_first.values())
    for peer in "bcd":
        peers.down(peer)
    assert not peers.is_behind("x")


def test_the_engine_says_when_it_has_caught_up(world: Any) -> None:
    world.sent("a", "ann", "bob")
    head = world.store("a").head()
    world.tick("b", LinkUp("a", (StreamHead("a", head.epoch, head.seq),)))
    assert CaughtUp("a") in world.pull("b", "a")
    further = LinkUp("a", (StreamHead("a", head.epoch, Seq(head.seq + 5)),))
    assert world.tick("b", LinkDown("a"), further) == []
    assert world.tick("b", LinkDown("a"), ClockMeasured("a", 9, 1)) == [CaughtUp("a")]
