"""What waits: for its stream to be read as far as its link said, or for a node to say what it knows."""

from typing import Any

import pytest

from gateway.courier.courier import Courier
from gateway.courier.item import Item
from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Handed
from gateway.engine.inputs import LinkDown, LinkUp, Now, PageRead, StreamHead
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.turnkey import turn_key
from gateway.engine.withheld import Withheld
from gateway.routing import inbox_stream
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Identity, Received, TurnState
from tests.gateway.lines import lines_run

EPOCH = Epoch("000001-0123456789ab")
A = NodeId("a")
ROW = Received(
    event_id=EventId("evt_" + "0" * 32),
    source=A,
    epoch=EPOCH,
    seq=Seq(1),
    kind="message",
    to_agent=AgentId("bob"),
    body=b"{}",
    state=TurnState.QUEUED,
    accepted_at_ms=0,
    expires_at_ms=1 << 50,
)


def start(*, doubted: bool) -> tuple[Courier, Withheld, MemoryStore]:
    store = MemoryStore(Identity(MeshId("m" * 43), NodeId("b"), EPOCH))
    store.begin()
    if doubted:
        store.doubt(A, EPOCH)
    store.commit()
    courier = Courier(CourierLimits())
    stream = inbox_stream(ROW.to_agent)
    courier.open(stream)
    courier.readmit(stream, Item(turn_key(ROW), ROW.priority), 0)
    courier.subscribe("s", stream, "run")
    courier.grant("s", 5)
    withheld = Withheld(courier)
    withheld.load(store, Now(0, 0))
    withheld.admit(store, ROW)
    return courier, withheld, store


def dealt(courier: Courier, now_ms: int) -> int:
    return len(courier.pump(now_ms, lambda: "lease").hand_overs)


def test_what_nobody_doubts_is_dealt() -> None:
    courier, withheld, _ = start(doubted=False)
    assert dealt(courier, 1) == 1
    assert withheld.next_ms() is None


def test_neither_time_nor_the_end_of_the_stream_ends_a_doubt() -> None:
    courier, withheld, _ = start(doubted=True)
    assert dealt(courier, 1) == 0
    withheld.go_on(A, Now(2, 2))
    withheld.let_go_late(Now(BEHIND_MS_MAX, BEHIND_MS_MAX))
    assert dealt(courier, BEHIND_MS_MAX) == 0


# --- for a stream


def link(world: Any, further: int = 0) -> LinkUp:
    head = world.store("a").head()
    return LinkUp("a", (StreamHead("a", head.epoch, Seq(head.seq + further)),))


@pytest.fixture
def behind(world: Any) -> Any:
    """``bob`` listens at ``b``, which has read one of the two events that its link advertised."""
    world.listen("b", "bob")
    world.first = world.sent("a", "ann", "bob")
    world.sent("a", "ann", "bob")
    world.tick("b", link(world))
    (world.read,) = (page for page in [world.page("b", "a", 1)] if page)
    return world


def hands(effects: list[Any], only: Any) -> list[str]:
    return [hand.event_id for hand in only(effects, Handed)]


def test_an_accepted_event_waits_for_what_stands_behind_it(behind: Any, only: Any) -> None:
    assert hands(behind.tick("b", PageRead("a", behind.read)), only) == []
    assert behind.row("b", behind.first).state is TurnState.QUEUED
    assert behind.acks("b", behind.first) == ["accepted"]
    assert hands(behind.pull("b", "a"), only)[0] == behind.first


def test_with_the_link_goes_what_it_advertised(behind: Any, only: Any) -> None:
    behind.tick("b", PageRead("a", behind.read))
    assert hands(behind.tick("b", LinkDown("a")), only) == [behind.first]


def test_a_stream_that_stands_still_is_not_waited_for_for_ever(behind: Any, only: Any) -> None:
    behind.tick("b", PageRead("a", behind.read))
    start_ms = behind.mono_ms
    assert hands(behind.wake("b"), only) == [behind.first]
    assert behind.mono_ms == start_ms + BEHIND_MS_MAX


def test_a_link_that_comes_up_holds_back_what_nobody_was_handed_yet(world: Any, only: Any) -> None:
    waiting = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.tick("b", link(world, further=1))
    assert world.listen("b", "bob") == []
    assert hands(world.tick("b", LinkDown("a")), only) == [waiting]


def test_what_was_begun_goes_on(world: Any, only: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    (hand,) = world.listen("b", "bob")
    world.nack("b", "bob", event, hand.lease_id, delay_ms=1_000)
    world.tick("b", link(world, further=1))
    assert hands(world.wake("b"), only) == [event]


def test_what_waits_may_be_taken_back(behind: Any, only: Any) -> None:
    late = behind.sent("a", "ann", "bob", expires_in_ms=1_000)
    behind.tick("b", LinkDown("a"), link(behind, further=5))
    behind.pull("b", "a")
    behind.advance(1_000)
    behind.tick("b")
    assert behind.acks("b", late) == ["accepted", "failed: expired"]
    assert late not in hands(behind.tick("b", LinkDown("a")), only)


def test_what_waits_counts_against_the_bound_of_the_inbox(behind: Any) -> None:
    behind.tick("b", LinkDown("a"), link(behind, further=50))
    for _ in range(behind.limits.max_depth + 3):
        last = behind.sent("a", "ann", "bob")
    behind.pull("b", "a")
    assert behind.acks("b", last) == ["refused: inbox_full"]


def test_a_stream_that_goes_on_after_it_stood_still_is_waited_for_again(behind: Any, only: Any) -> None:
    behind.tick("b", LinkDown("a"), link(behind, further=5))
    behind.tick("b", PageRead("a", behind.read))
    (first,) = only(behind.wake("b"), Handed)
    assert hands(behind.pull("b", "a"), only) == []
    behind.settle("b", "bob", first.event_id, lease_id=first.lease_id)
    start_ms = behind.mono_ms
    assert len(hands(behind.wake("b"), only)) == 1
    assert behind.mono_ms == start_ms + BEHIND_MS_MAX


def test_to_hold_turns_back_and_to_deal_them_again_looks_at_none_of_them(make_world: Any) -> None:
    work = []
    for turns in (10, 200):
        world = make_world("a", "b", limits=CourierLimits(max_depth=1_000))
        world.live("a", "ann")
        world.live("b", "bob")
        for _ in range(turns):
            world.sent("a", "ann", "bob")
        world.pull("b", "a")
        for item in (link(world, further=1), LinkDown("a")):
            inputs = [item]
            work.append(lines_run(lambda: world.tick("b", *inputs)))  # noqa: B023 - called at once
    assert work[:2] == work[2:]
