"""An agent that is removed leaves part by part; to everybody else it is gone at once."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import AgentChanged, Handed, Refused
from gateway.engine.inputs import AddAgent, RemoveAgent
from gateway.engine.latecomers import AGENT_REMOVED
from gateway.engine.policy import Policy
from outbox.ids import NodeId, make_epoch
from outbox.kinds import Outcome
from outbox.memory import MemoryStore
from outbox.records import Identity, TurnState

LIMITS = CourierLimits(max_depth=1_000, lease_ms=30_000, max_deliveries=2)
STEPS = ["wait", "lease runs out", "settle", "nack", "send", "expire", "restart", "repeat", "meet", "tick"]


def crowded(make_world: Any, counting: Any, turns: int, rows: int = 10) -> Any:
    """``bob`` at ``b`` has so many messages of ``ann``, three of them in hand."""
    world = make_world("a", limits=LIMITS, policy=Policy(errand_rows=rows))
    identity = Identity(world.view().mesh, NodeId("b"), make_epoch(1, b"\x01\x23\x45\x67\x89\xab"))
    world.join("b", counting(MemoryStore(identity)))
    world.live("a", "ann")
    world.live("b", "bob")
    world.events = [
        world.sent("a", "ann", "bob", expires_in_ms=60_000 if at % 2 else 600_000) for at in range(turns)
    ]
    world.meet()
    world.hands = world.listen("b", "bob", credit=3)
    return world


def ends(world: Any) -> list[Any]:
    rows = [world.row("b", event) for event in world.events]
    return [(row.state, row.outcome, row.error) for row in rows]


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_ends_more_than_its_share(make_world: Any, counting: Any, *, restarts: bool) -> None:
    most = []
    for turns in (40, 160):
        world = crowded(make_world, counting, turns)
        world.store("b").most = 0
        world.leave("b", "bob")
        world.run_errands("b", restarts=restarts)
        most.append(world.store("b").most)
        assert ends(world) == [(TurnState.DONE, Outcome.FAILED, AGENT_REMOVED)] * turns
        assert {*world.acks("b", world.events[-1])} == {"accepted", f"failed: {AGENT_REMOVED}"}
    assert most[1] <= most[0]


def test_until_it_has_left_nobody_else_can_have_its_name(make_world: Any, counting: Any) -> None:
    world = crowded(make_world, counting, 25)
    world.leave("b", "bob")
    refused = world.ask("b", AddAgent(900, "bob", b""))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.retryable) == ("name_taken", True)
    while world.store("b").errands():
        world.tick("b")
    assert isinstance(world.ask("b", AddAgent(901, "bob", b"")), AgentChanged)


def test_one_that_leaves_and_comes_within_a_tick_has_its_name(make_world: Any, counting: Any) -> None:
    world = crowded(make_world, counting, 5)
    world.leave("b", "bob")
    assert isinstance(world.ask("b", AddAgent(901, "bob", b"")), AgentChanged)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(STEPS), max_size=12))
def test_whatever_comes_meanwhile_it_ends_as_if_it_had_left_at_once(
    make_world: Any, counting: Any, steps: list[str]
) -> None:
    found = []
    for rows in (1, 1_000):
        world = crowded(make_world, counting, 14, rows)
        world.tick("b", RemoveAgent(800, "bob"))
        for at, step in enumerate(steps):
            happens(world, step, at)
        while world.store("b").errands():
            assert not [effect for effect in world.tick("b") if isinstance(effect, Handed)]
        world.meet()
        states = [world.delivery("a", event).state for event in world.events]
        acks = [
            len({ack.event_id for ack in world.said("b", "ack") if ack.corr_id == e}) for e in world.events
        ]
        found.append((ends(world), states, acks))
    assert found[0] == found[1]
    assert {*found[0][0]} == {(TurnState.DONE, Outcome.FAILED, AGENT_REMOVED)}


def happens(world: Any, step: str, at: int) -> None:
    hand = world.hands[at % len(world.hands)]
    match step:
        case "wait" | "lease runs out" | "expire":
            world.advance({"wait": 1, "lease runs out": 30_000, "expire": 61_000}[step])
        case "settle":
            assert isinstance(world.settle("b", "bob", hand.event_id, lease_id=hand.lease_id), Refused)
        case "nack":
            assert isinstance(world.nack("b", "bob", hand.event_id, hand.lease_id), Refused)
        case "send":
            event = world.sent("a", "ann", "bob")
            world.pull("b", "a")
            assert world.store("b").ledger(event) == [], "nothing more is accepted"
        case "restart":
            world.restart("b")
        case "meet":
            world.meet()
        case "repeat":
            world.tick("a")
            world.pull("b", "a")
        case _:
            world.tick("b")
