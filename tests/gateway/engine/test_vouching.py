"""What is held is judged in parts, when the room says something new of who has sent it, and else not."""

from typing import Any

import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Handed
from gateway.engine.policy import Policy
from outbox.ids import MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Identity, TurnState

MESH = MeshId("mesh-" + "x" * 38)


def unheard(make_world: Any, counting: Any, sent: int, rows: int) -> Any:
    """``ann`` and ``amy`` have sent so much from ``a`` to ``bob`` at ``b``, which has not heard of them."""
    world = make_world("a", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    world.join("b", counting(MemoryStore(Identity(MESH, NodeId("b"), world.epoch_of("a")))))
    world.live("b", "bob")
    known = world.owners.copy()
    world.live("a", "ann", "amy")
    world.meant, world.owners = world.owners, known
    world.see("b")
    world.events = [world.sent("a", ("ann", "amy")[at % 2], "bob") for at in range(sent)]
    world.pull("b", "a")
    world.store("b").most = 0
    return world


def states(world: Any) -> list[TurnState]:
    return [world.row("b", event).state for event in world.events]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("whose", ["a", "c"])
def test_no_tick_judges_more_than_its_share(
    make_world: Any, counting: Any, *, whose: str, restarts: bool
) -> None:
    most, ends = [], []
    for sent, rows in ((40, 10), (160, 10), (160, 1_000)):
        world = unheard(make_world, counting, sent, rows)
        for agent in ("ann", "amy"):
            world.own(agent, whose)
        world.see("b")
        assert bool(world.store("b").errands()) is (rows < sent)
        while TurnState.HELD in states(world):
            if restarts:
                world.restart("b")
            assert world.nodes["b"].engine.next_wake_ms(world.now()) == world.mono_ms
            world.tick("b")
        most.append(world.store("b").most)
        ends.append([(world.row("b", event).state, world.row("b", event).error) for event in world.events])
    assert most[1] <= most[0] < most[2]
    assert ends[1] == ends[2]
    assert {*ends[1]} == {(TurnState.QUEUED, None) if whose == "a" else (TurnState.DONE, "foreign_agent")}


def test_a_view_that_says_nothing_new_of_who_has_sent_it_costs_nothing(
    make_world: Any, counting: Any
) -> None:
    world = unheard(make_world, counting, 40, 10)
    world.own("eve", "x")
    world.see("b")
    world.own("ann", "c", 0)  # older than what it has sent
    world.see("b")
    world.run_errands("b", restarts=False)
    world.store("b").most = 0
    world.own("eve", "x", 2)
    world.see("b")
    assert world.store("b").most < 5
    world.own("amy", "a")
    world.see("b")
    world.run_errands("b", restarts=False)
    assert states(world) == [TurnState.HELD, TurnState.QUEUED] * 20


def test_what_comes_of_an_agent_meanwhile_is_dealt_at_once(make_world: Any, counting: Any) -> None:
    world = unheard(make_world, counting, 20, 1)
    world.owners |= world.meant
    world.see("b")
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    assert states(world).count(TurnState.HELD) > 10
    assert world.row("b", event).state is TurnState.QUEUED


def test_what_the_room_vouches_for_is_not_refused_for_want_of_a_look(make_world: Any, counting: Any) -> None:
    """The process was away for longer than things are held, and there is more than one tick may look at."""
    world = unheard(make_world, counting, 40, 3)
    world.advance(world.policy.hold_ms)
    world.owners |= world.meant
    world.restart("b")
    while world.store("b").errands() or world.nodes["b"].engine.next_wake_ms(world.now()) == world.mono_ms:
        world.tick("b")
        world.advance(1)
    assert states(world) == [TurnState.QUEUED] * 40
    assert len([e for e in world.listen("b", "bob", credit=50) if isinstance(e, Handed)]) == 40
