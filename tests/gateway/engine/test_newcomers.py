"""What was there before an agent is given to it part by part; what comes meanwhile comes once."""

from typing import Any

import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.inputs import AddAgent
from gateway.engine.policy import Policy
from outbox.ids import NodeId
from outbox.memory import MemoryStore
from outbox.records import Identity, Share


def told(make_world: Any, counting: Any, sent: int, rows: int) -> Any:
    """``ann`` has told everybody so many things before ``abe`` comes to ``a``."""
    world = make_world("b", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    identity = Identity(world.view().mesh, NodeId("a"), world.epoch_of("b"))
    world.join("a", counting(MemoryStore(identity)))
    world.live("a", "ann", "amy")
    world.live("b", "bob")
    world.events = [world.sent("b", "bob", "*", expires_in_ms=60_000 + at % 3) for at in range(sent)]
    world.pull("a", "b")
    world.store("a").most = 0
    world.tick("a", AddAgent(900, "abe", b""))
    return world


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_gives_more_than_its_share(make_world: Any, counting: Any, *, restarts: bool) -> None:
    most = []
    for sent in (40, 160):
        world = told(make_world, counting, sent, 10)
        world.run_errands("a", restarts=restarts)
        most.append(world.store("a").most)
        rows = [world.store("a").received("b", event, "abe") for event in world.events]
        assert [row.share for row in rows] == [Share.LATE] * sent
    assert most[1] <= most[0]


def test_what_comes_meanwhile_it_gets_once(make_world: Any, counting: Any) -> None:
    world = told(make_world, counting, 20, 3)
    new = world.sent("b", "bob", "*", expires_in_ms=70_000)
    world.pull("a", "b")
    while world.store("a").errands():
        world.tick("a")
    assert world.store("a").received("b", new, "abe").share is Share.EVERYONE
    assert all(world.store("a").received("b", event, "abe") for event in world.events)
    assert len(world.listen("a", "abe", credit=50)) == 21


def test_one_that_leaves_before_it_has_all_gets_no_more(make_world: Any, counting: Any) -> None:
    world = told(make_world, counting, 20, 3)
    world.leave("a", "abe")
    while world.store("a").errands():
        world.tick("a")
    given = [event for event in world.events if world.store("a").received("b", event, "abe")]
    assert 0 < len(given) < 20


def test_what_expires_meanwhile_it_does_not_get(make_world: Any, counting: Any) -> None:
    world = told(make_world, counting, 20, 3)
    world.advance(61_000)
    given = [event for event in world.events if world.store("a").received("b", event, "abe")]
    while world.store("a").errands():
        world.tick("a")
    assert given == [event for event in world.events if world.store("a").received("b", event, "abe")]
