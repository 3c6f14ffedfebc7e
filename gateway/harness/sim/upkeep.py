"""A node goes out of service: announced, switched off, brought back, which is said or not."""

from collections.abc import Callable
from typing import Protocol

from gateway.harness.sim.announcements import Announcement
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.troubled import Troubled
from outbox.ids import NodeId

_FOR_MS = (None, 5_000, 60_000, 600_000)
"""What operators expect: nothing, too little, about right, far too much."""
_REASONS = ("", "new disk", "until 2020-01-01T00:00:00.000Z: a joke")
_OFF_US = 4_000_000
"""Mean time from the announcement to switching off."""
_LONGER_US = 60_000_000


class World(Troubled, Protocol):
    """And what this fault needs."""

    in_upkeep: set[NodeId]


def maintenance(troubles: World, dice: Dice) -> Callable[[], None] | None:
    """One node goes out of service; what is returned brings it back."""
    mesh, name = troubles.mesh, dice.among(troubles.mesh.names)
    if name in troubles.in_upkeep:
        return None
    troubles.in_upkeep.add(name)
    mesh.announcements[name].want(Announcement(dice.among(_FOR_MS), dice.among(_REASONS)))
    if dice.chance(0.6):
        troubles.later(dice.spaced(_OFF_US), _switch_off, troubles, name)
    if dice.chance(0.3):
        longer = Announcement(dice.among(_FOR_MS), "it takes longer")
        troubles.later(dice.spaced(_LONGER_US), mesh.announcements[name].want, longer)
    says_so = dice.chance(0.7)

    def back() -> None:
        troubles.in_upkeep.discard(name)
        troubles.note(name, "maintenance", "over" if says_so else "over, which nobody says")
        if says_so:
            mesh.announcements[name].want(Announcement(over=True))
        mesh.start(name)

    return back


def _switch_off(troubles: World, name: NodeId) -> None:
    if troubles.is_on and name in troubles.in_upkeep:
        troubles.mesh.kill(name)
