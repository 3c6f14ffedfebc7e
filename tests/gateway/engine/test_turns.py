"""Engagement: who holds what, for how long, and how each turn ends."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine import turns
from gateway.engine.effects import Handed
from gateway.engine.inputs import Grant, RemoveAgent, Send, Unsubscribe
from outbox.ids import MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Identity, TurnState

MESH = MeshId("mesh-" + "x" * 38)


def test_nothing_is_handed_over_without_credit(queued: Any, only: Any) -> None:
    queued.live("b", "ben")
    assert queued.row("b", queued.event).state is TurnState.QUEUED
    second = queued.sent("a", "ann", "bob", priority=0)
    queued.pull("b", "a")
    assert [hand.event_id for hand in queued.listen("b", "bob", credit=1)] == [second]
    (hand,) = only(queued.tick("b", Grant(9, "socket", 1)), Handed)
    assert hand.event_id == queued.event


def test_a_lease_is_kept_over_disconnect_and_restart_and_then_it_is_somebody_elses(
    queued: Any, only: Any
) -> None:
    (first,) = queued.listen("b", "bob", "socket-1", "run-1")
    queued.tick("b", Unsubscribe("socket-1"))
    queued.advance(20_000)
    (resumed,) = queued.listen("b", "bob", "socket-2", "run-1")
    assert resumed == msgspec.structs.replace(first, subscriber="socket-2", resumed=True)
    queued.advance(20_000)
    assert queued.tick("b") == []
    queued.restart("b")
    assert queued.listen("b", "bob", "socket-3", "run-2") == []
    queued.advance(29_999)
    assert queued.tick("b") == []
    queued.advance(1)
    (second,) = only(queued.tick("b"), Handed)
    assert (second.subscriber, second.delivery_count, second.resumed) == ("socket-3", 2, False)
    assert second.lease_id != first.lease_id
    row = queued.row("b", queued.event)
    assert (row.session, row.delivery_count) == ("run-2", 2)
    late = queued.settle("b", "bob", queued.event, lease_id=first.lease_id)
    assert late.code == "conflict"
    assert queued.settle("b", "bob", queued.event, lease_id=second.lease_id).duplicate is False
    assert queued.acks("b", queued.event) == ["accepted", "ok"]


def test_a_handler_that_dies_each_time_has_failed(queued: Any) -> None:
    counts = [hand.delivery_count for hand in queued.listen("b", "bob")]
    while queued.row("b", queued.event).state is not TurnState.DONE:
        effects = queued.wake("b")
        counts += [effect.delivery_count for effect in effects if isinstance(effect, Handed)]
        if len(counts) == 2:
            queued.restart("b")
            queued.listen("b", "bob")
    assert counts == [1, 2, 3]
    assert queued.acks("b", queued.event) == ["accepted", "failed: max_deliveries"]
    assert queued.row("b", queued.event).delivery_count == 3
    queued.meet()
    assert queued.incidents("a") == [("turn_failed", queued.event)]


def test_what_time_ends_in_the_own_house_the_sender_learns_in_the_same_tick(world: Any) -> None:
    world.live("a", "amy")
    event = world.sent("a", "ann", "amy")
    world.listen("a", "amy")
    while world.row("a", event).state is not TurnState.DONE:
        world.wake("a")
    row = world.delivery("a", event)
    assert (row.state, row.outcome, row.error) == ("processed", "failed", "max_deliveries")


def test_a_turn_that_used_up_its_deliveries_before_a_restart_fails_after_it(queued: Any) -> None:
    for _ in range(queued.limits.max_deliveries):
        queued.restart("b")
        (hand,) = queued.listen("b", "bob")
        queued.tick("b", Unsubscribe("socket"))
        queued.nack("b", "bob", queued.event, hand.lease_id, delay_ms=60_000)
    queued.restart("b")
    queued.tick("b")
    assert queued.acks("b", queued.event) == ["accepted", "failed: max_deliveries"]


# --- what time does


def test_nobody_was_there_until_it_expired(queued: Any) -> None:
    start_ms = queued.wall_ms
    queued.wake("b")
    assert queued.wall_ms == start_ms + 3_600_000
    assert queued.acks("b", queued.event) == ["accepted", "failed: expired"]
    assert queued.listen("b", "bob") == []
    assert queued.nodes["b"].engine.next_wake_ms(queued.now()) is None


def test_it_may_have_expired_on_the_way(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=1_000)
    world.listen("b", "bob")
    world.advance(1_000)
    world.pull("b", "a")
    assert world.acks("b", event) == ["accepted", "failed: expired"]
    assert world.row("b", event).delivery_count == 0


def test_work_that_has_begun_may_end_after_the_expiry(queued: Any) -> None:
    queued.advance(3_590_000)
    (hand,) = queued.listen("b", "bob")
    queued.advance(15_000)
    assert queued.tick("b") == []
    assert queued.settle("b", "bob", queued.event, lease_id=hand.lease_id).duplicate is False
    assert queued.acks("b", queued.event) == ["accepted", "ok"]


def test_work_that_has_begun_may_be_resumed_after_the_expiry(queued: Any) -> None:
    queued.advance(3_590_000)
    (hand,) = queued.listen("b", "bob", "socket-1")
    queued.advance(15_000)
    (resumed,) = queued.listen("b", "bob", "socket-2")
    assert (resumed.lease_id, resumed.resumed) == (hand.lease_id, True)
    assert queued.row("b", queued.event).state is TurnState.LEASED


def test_after_the_expiry_it_is_not_dealt_again_and_the_credit_is_for_the_next(
    queued: Any, only: Any
) -> None:
    queued.advance(3_590_000)
    queued.listen("b", "bob", credit=1)
    queued.advance(29_000)
    queued.tick("b", Grant(9, "socket", 1))
    queued.advance(2_000)
    second = queued.sent("a", "ann", "bob", priority=4)
    effects = queued.pull("b", "a")
    assert queued.acks("b", queued.event) == ["accepted", "failed: expired"]
    assert [hand.event_id for hand in only(effects, Handed)] == [second]


def test_the_memory_of_finished_turns_is_given_back(world: Any) -> None:
    world.listen("b", "bob")
    for _ in range(30):
        event = world.sent("a", "ann", "bob")
        world.pull("b", "a")
        lease = world.row("b", event).lease_id
        world.settle("b", "bob", event, lease_id=lease)
        world.tick("b", Grant(1, "socket", 1))
    assert world.nodes["b"].engine.next_wake_ms(world.now()) is None


# --- an agent that is taken away


def test_what_a_removed_agent_had_open_has_failed_and_its_sockets_get_nothing_more(make_world: Any) -> None:
    world = make_world("a", "b", limits=CourierLimits(max_depth=20))
    world.live("a", "ann")
    world.live("b", "bob", "ben")
    other = world.sent("a", "ann", "ben")
    leased, waiting = world.sent("a", "ann", "bob"), world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.listen("b", "bob", credit=1)
    world.listen("b", "ben", "socket-ben", credit=1)
    world.tick("b", RemoveAgent(50, "bob"))
    for event in (leased, waiting):
        assert world.acks("b", event) == ["accepted", "failed: agent_removed"]
    assert world.acks("b", other) == ["accepted"]
    world.restart("b")
    world.own("bob", "b", 1, active=False)
    world.live("b", "bob")
    world.meet()
    assert world.delivery("a", leased).error == "agent_removed"
    assert world.ask("b", Grant(51, "socket", 1)).code == "conflict"


def test_the_old_sockets_of_a_name_do_not_get_the_turns_of_its_successor(world: Any, only: Any) -> None:
    world.listen("b", "bob")
    world.tick("b", RemoveAgent(50, "bob"))
    world.live("b", "bob")
    world.tick("a", Send(req=9, agent="ann", to="bob", payload=msgspec.Raw(b"1")))
    assert only(world.pull("b", "a"), Handed) == []


def rest_of_it(world: Any) -> None:
    """Let ``b`` do all that it wants to do at once."""
    while world.nodes["b"].engine.next_wake_ms(world.now()) == world.mono_ms:
        world.tick("b")


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_gives_a_session_again_more_than_its_share(
    make_world: Any, counting: Any, only: Any, monkeypatch: pytest.MonkeyPatch, *, restarts: bool
) -> None:
    """Nothing new before it has all, each once and under its lease, whatever has ended meanwhile."""
    monkeypatch.setattr(turns, "DEALT_MAX", 5)
    most = []
    for count in (20, 80):
        world = make_world("a", limits=CourierLimits(max_depth=1_000))
        world.join("b", counting(MemoryStore(Identity(MESH, NodeId("b"), world.epoch_of("a")))))
        world.live("a", "ann")
        world.live("b", "bob")
        for _ in range(count):
            world.sent("a", "ann", "bob")
        world.pull("b", "a")
        world.listen("b", "bob", subscriber="old", credit=count)
        rest_of_it(world)
        leases = {hand.event_id: hand.lease_id for hand in only(world.nodes["b"].effects, Handed)}
        assert len(leases) == count
        world.sent("a", "ann", "bob")
        world.pull("b", "a")
        if restarts:
            world.restart("b")
        world.store("b").most = 0
        first = world.listen("b", "bob", subscriber="new", credit=count)
        assert [hand.resumed for hand in first] == [True] * 5
        *_, last = leases
        world.settle("b", "bob", last, lease_id=leases[last])
        rest_of_it(world)
        given = [hand for hand in only(world.nodes["b"].effects, Handed) if hand.subscriber == "new"]
        assert given[:5] == first
        assert [hand.resumed for hand in given] == [True] * (count - 1) + [False]
        assert {hand.event_id: hand.lease_id for hand in given if hand.resumed} == {
            event: lease for event, lease in leases.items() if event != last
        }
        most.append(world.store("b").most)
    assert most[0] == most[1]


def test_what_expires_in_one_moment_ends_in_several_ticks_and_is_never_dealt(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "DUE_MAX", 4)
    monkeypatch.setattr(turns, "DEALT_MAX", 2)
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    events = [world.sent("a", "ann", "bob", expires_in_ms=60_000) for _ in range(15)]
    world.pull("b", "a")
    world.advance(60_000)
    open_turns = [len(world.store("b").open_turns())]
    assert world.listen("b", "bob", credit=20) == []
    while world.nodes["b"].engine.next_wake_ms(world.now()) == world.mono_ms:
        open_turns.append(len(world.store("b").open_turns()))
        assert not [effect for effect in world.tick("b") if isinstance(effect, Handed)]
    assert [world.row("b", event).error for event in events] == ["expired"] * 15
    assert max(before - after for before, after in pairwise(open_turns)) <= 4 + 2 * 2
    world.sent("a", "ann", "bob")
    world.pull("b", "a")
    assert len([effect for effect in world.nodes["b"].effects if isinstance(effect, Handed)]) == 1
