"""The judge of worlds, shown worlds in which a promise is broken that no planted bug breaks."""

from gateway.harness.sim.findings import Promise
from gateway.harness.sim.runner import Limits, plan_of
from gateway.harness.sim.world import World
from stateroom.bodies import RoomMap


def test_rooms_that_stay_different_are_found_and_named_as_that() -> None:
    """I6: a node has lost a record that everybody else shows, and nobody says it again."""
    world = World(plan_of(1, Limits(faults=(), minutes=1)))

    def lose() -> None:
        slots = world.mesh.living()[0].rooms._index._slots
        del slots[next(name for name in slots if name[0] is RoomMap.AGENTS)]

    world.loop.call_later(50, lose)
    (finding,) = world.run().findings
    assert finding.promise is Promise.ROOMS_CONVERGE
    assert "rooms differ" in finding.what
