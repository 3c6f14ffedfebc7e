"""Of what the owner and its fallback both answer the sender gets one as a turn, whichever comes first."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.engine.inputs import Prune
from gateway.engine.policy import Policy, Retention
from outbox.envelope import RouteDecision
from outbox.ids import EventId, make_event_id
from outbox.kinds import Kind, Outcome
from outbox.records import DeliveryState, Received, TurnState

GRACE_MS = 60_000


@pytest.fixture
def both(make_world: Any) -> Any:
    """``ann`` has asked ``bob``: ``b`` took it and went away, ``c`` stood in for it, both have it in hand."""
    return asked_twice(make_world)


def asked_twice(make_world: Any, **policy: Any) -> Any:
    world = make_world("a", "b", "c", **policy)
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=GRACE_MS)
    world.stand_in("c", "bob", "b")
    world.event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.absent = {"b"}
    world.see("a")
    world.advance(GRACE_MS)
    world.tick("a")
    world.hands = {"b": world.listen("b", "bob")[0]}
    world.pull("c", "a")
    world.hands["c"] = world.listen("c", "bob")[0]
    return world


def answer(world: Any, node: str, **rest: Any) -> EventId:
    lease = None if node in rest.pop("done", ()) else world.hands[node].lease_id
    sent = world.reply(node, "bob", world.event, b'"%s"' % node.encode(), lease_id=lease, **rest)
    return sent.event_id


def turns(world: Any) -> list[Received]:
    """The replies that ``a`` has, in order."""
    return list(world.store("a").inbox("ann", done=True, limit=100))


def dealt(world: Any, subscriber: str = "socket") -> list[EventId]:
    return [hand.event_id for hand in world.listen("a", "ann", subscriber, subscriber)]


@pytest.mark.parametrize(("first", "second"), ["bc", "cb"])
def test_the_second_answer_is_kept_and_is_no_turn(both: Any, first: str, second: str) -> None:
    won, lost = answer(both, first), answer(both, second)
    both.pull("a", first)
    both.pull("a", second)
    assert dealt(both) == [won]
    late = both.row("a", lost)
    assert (late.state, late.outcome, late.error) == (TurnState.DONE, Outcome.REFUSED, "superseded")
    assert both.acks("a", lost) == ["accepted"], "it has arrived, and its sender owes nothing more"
    assert both.incidents("a") == [("duplicate_engagement", both.event)]
    both.pull(second, "a")
    assert both.delivery(second, lost).state == "accepted"


def test_all_answers_of_the_node_that_was_first_are_dealt(both: Any) -> None:
    """Both come in one tick, so that no clock tells which of them was first."""
    won, lost = answer(both, "c"), answer(both, "b")
    both.pull("a", "c")
    both.pull("a", "b")
    more, late = answer(both, "c", done="bc"), answer(both, "b", done="bc")
    both.pull("a", "b")
    both.pull("a", "c")
    assert dealt(both) == [won, more]
    assert {row.event_id for row in turns(both) if row.error == "superseded"} == {lost, late}


def test_an_answer_that_was_not_taken_stands_in_nobodys_way(both: Any) -> None:
    """``ann`` is removed while the first one waits, and comes back: she has nothing of it yet."""
    lost, won = answer(both, "b"), answer(both, "c")
    both.pull("a", "b")
    both.leave("a", "ann")
    both.live("a", "ann")
    assert both.row("a", lost).error == "agent_removed"
    both.pull("a", "c")
    assert dealt(both) == [won]


def forget_record(world: Any) -> Any:
    """Nobody has heard of the record that ``b`` answers under; what brings it back."""
    record = world.owners["bob"]
    world.owners["bob"] = replace(record, node="c", owner_epoch=0)
    world.see("a")
    world.pull("a", "b")

    def come_back() -> None:
        world.owners["bob"] = record
        world.see("a")

    return come_back


def test_an_answer_that_waited_for_its_record_is_the_first_when_nothing_came_meanwhile(both: Any) -> None:
    won, lost = answer(both, "b"), answer(both, "c")
    come_back = forget_record(both)
    assert both.row("a", won).state is TurnState.HELD
    come_back()
    both.pull("a", "c")
    assert dealt(both) == [won]
    assert both.row("a", lost).error == "superseded"


def test_what_is_let_go_after_the_other_was_dealt_is_set_aside(both: Any) -> None:
    lost, won = answer(both, "b"), answer(both, "c")
    come_back = forget_record(both)
    both.pull("a", "c")
    assert both.row("a", lost).state is TurnState.HELD
    assert dealt(both) == [won]
    come_back()
    assert both.row("a", lost).error == "superseded"
    assert both.row("a", lost).outcome is Outcome.REFUSED


def test_messages_are_no_answers_and_answers_to_several_are_all_dealt(make_world: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob")
    world.live("c", "cy")
    event = world.sent("a", "ann", "bob,cy")
    world.meet()
    for node, agent in (("b", "bob"), ("c", "cy")):
        (hand,) = world.listen(node, agent)
        world.reply(node, agent, event, lease_id=hand.lease_id)
        world.sent(node, agent, "ann")
    world.meet()
    assert len(dealt(world)) == 4


def test_a_restart_forgets_nothing_of_it(both: Any) -> None:
    won, lost = answer(both, "c"), answer(both, "b")
    both.pull("a", "c")
    both.restart("a")
    both.pull("a", "b")
    assert dealt(both) == [won]
    assert both.row("a", lost).error == "superseded"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it is a class, and keeps nothing
@given(order=st.lists(st.sampled_from("bc"), min_size=1, max_size=8), restart=st.integers(0, 8))
def test_whoever_is_first_is_the_only_one(make_world: Any, order: list[str], restart: int) -> None:
    world, done = asked_twice(make_world), ""
    for index, node in enumerate(order):
        if index == restart:
            world.restart("a")
        answer(world, node, done=done)
        done += node
        world.pull("a", node)
    bodies = {row.event_id: row.source for row in turns(world)}
    assert [bodies[event] for event in dealt(world)] == [order[0]] * order.count(order[0])
    replies = [event for node in "bc" for event in world.said(node, Kind.REPLY)]
    assert len(bodies) == len(replies), "each is kept"


# --- when nobody knows any more


@pytest.fixture
def forgetful(make_world: Any) -> Any:
    """The same, and ``a`` keeps nothing of its outbox that has ended."""
    return asked_twice(make_world, policy=Policy(retention=Retention(entries_max=0)))


def forget(world: Any, name: str) -> None:
    """Retention looks, and passes whatever it may."""
    while world.ask(name, Prune(next(world.reqs), force=True)).more:
        pass


def test_a_second_answer_to_what_was_forgotten_is_refused_and_its_sender_knows(forgetful: Any) -> None:
    won = answer(forgetful, "c")
    forgetful.pull("a", "c")
    assert dealt(forgetful) == [won]
    forgetful.pull("b", "a")
    forget(forgetful, "a")
    assert forgetful.store("a").obligations(forgetful.event) == []
    lost = answer(forgetful, "b")
    forgetful.pull("a", "b")
    assert [row.event_id for row in turns(forgetful)] == [won]
    assert forgetful.acks("a", lost) == ["refused: below_floor"]
    forgetful.pull("b", "a")
    row = forgetful.delivery("b", lost)
    assert (row.state, row.error) == (DeliveryState.DEAD_LETTER, "below_floor")
    assert ("dead_letter", lost) in forgetful.incidents("b")


def test_an_ack_of_what_was_forgotten_changes_nothing(forgetful: Any) -> None:
    answer(forgetful, "c")
    forgetful.pull("a", "c")
    forget(forgetful, "a")
    forgetful.settle("b", "bob", forgetful.event, lease_id=forgetful.hands["b"].lease_id)
    before = forgetful.incidents("a")
    forgetful.pull("a", "b")
    assert forgetful.incidents("a") == before
    assert forgetful.store("a").obligations(forgetful.event) == []


@pytest.mark.parametrize(
    ("asked_ms", "acks"),
    [
        pytest.param(-1, ["accepted"], id="where its agent lived before"),
        pytest.param(1_000, ["refused: below_floor"], id="here, and forgotten"),
        pytest.param(1_000_000, ["accepted"], id="after the backup that was put back"),
    ],
)
def test_what_is_answered_and_not_known_is_refused_only_where_it_was_forgotten(
    make_world: Any, stranger: Any, asked_ms: int, acks: list[str]
) -> None:
    world = make_world("a", policy=Policy(retention=Retention(entries_max=0)))
    world.own("eve", "x")
    world.live("a", "ann", "bob")
    for _ in range(2):
        world.advance(100_000)
        event = world.sent("a", "ann", "bob")
        world.settle("a", "bob", event)
        forget(world, "a")
    assert world.store("a").floor() is not None
    unknown = make_event_id(world.wall_ms - 200_000 + asked_ms, b"an" + bytes(8))
    reply = stranger.event(kind=Kind.REPLY, corr_id=unknown, to_agent_id="ann")
    world.tick("a", stranger.says(reply, to=("a",)))
    assert world.acks("a", reply.event_id) == acks


def test_what_stands_in_for_another_agent_is_told_all_of_its_answers(forgetful: Any, stranger: Any) -> None:
    """What ``bob`` has asked stands in the outbox of ``b``."""
    forgetful.own("eve", "x")
    forgetful.see()
    forget(forgetful, "c")
    unknown = make_event_id(forgetful.wall_ms - GRACE_MS, b"bo" + bytes(8))
    decision = RouteDecision("b", 1, "fallback")
    reply = stranger.event(kind=Kind.REPLY, corr_id=unknown, to_agent_id="bob")
    routed = replace(reply, trace=replace(reply.trace, route_decision=decision))
    forgetful.tick("c", stranger.says(routed, to=("c",)))
    assert forgetful.acks("c", reply.event_id) == ["accepted"]
