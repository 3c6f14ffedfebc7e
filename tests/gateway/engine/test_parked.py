"""What was read of a stream is engaged once the stream was read to where its link said it goes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.effects import Handed
from gateway.engine.inputs import LinkDown, LinkUp, PageRead, StreamHead
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.parked import Parked
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import TurnState

A, C = NodeId("a"), NodeId("c")


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


@given(st.lists(st.tuples(st.sampled_from([A, C]), st.integers(0, 5), st.booleans()), max_size=40))
def test_each_item_is_released_once_with_its_stream(steps: list[tuple[NodeId, int, bool]]) -> None:
    parked, model = Parked(), {A: dict[Any, None](), C: dict[Any, None]()}
    for now_ms, (source, number, leaves) in enumerate(steps):
        place = (source, EventId(str(number)), AgentId("bob"))
        if leaves:
            parked.drop(place)
            model[source].pop(place, None)
        else:
            parked.add(place, now_ms)
            model[source][place] = None
    assert (parked.next_ms() is None) == (not any(model.values()))
    assert set(parked.due(len(steps) + BEHIND_MS_MAX)) == {source for source in model if model[source]}
    for source, places in model.items():
        assert parked.release(source) == list(places)
        assert parked.release(source) == []
    assert parked.next_ms() is None
