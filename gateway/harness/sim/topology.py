"""Who can meet whom in a world, who holds copies, and who speaks an older version of the frames."""

from itertools import combinations

import msgspec

from gateway.harness.sim.dice import Dice
from gateway.harness.sim.plan import Fault, Plan
from outbox.ids import NodeId


class Topology(msgspec.Struct, frozen=True):
    """Follows from the plan."""

    mirrors: frozenset[NodeId]
    """Nodes that keep copies of all outboxes."""
    apart: frozenset[frozenset[NodeId]]
    """Pairs that never have a connection."""
    old: frozenset[NodeId]
    """Nodes that speak version 1."""
    refused: bool
    """These may not read all, so they are refused until they are brought up to date."""
    lying: NodeId | None
    """The one that changes what it carries for others."""

    def meet(self, one: str, other: str) -> bool:
        """Whether two nodes can ever have a connection."""
        return frozenset((one, other)) not in self.apart

    def may_copy(self, reader: str, peer: str) -> bool:
        """Whether one can read the outboxes of others from the other: version 1 is told of no copies."""
        return self.meet(reader, peer) and self.old.isdisjoint((reader, peer))


def topology_of(plan: Plan, names: list[NodeId]) -> Topology:
    """Two seeds if there are enough nodes, of which the first may lie; the others meet only the seeds."""
    dice = Dice(plan.seed, "topology")
    carried = not {Fault.APART, Fault.LYING_RELAY}.isdisjoint(plan.faults)
    seeds = names[: 2 if len(names) > 3 else 1]
    ordinary = names[len(seeds) :]
    mirrors = carried or dice.chance(0.3)
    old = frozenset(name for name in names if dice.chance(0.4))
    older = not {Fault.OLD_VERSION, Fault.REFUSED}.isdisjoint(plan.faults)
    return Topology(
        mirrors=frozenset(seeds if mirrors else ()),
        apart=frozenset(map(frozenset, combinations(ordinary, 2))) if carried else frozenset(),
        old=old if older and not carried else frozenset(),
        refused=Fault.REFUSED in plan.faults,
        lying=seeds[0] if Fault.LYING_RELAY in plan.faults else None,
    )
