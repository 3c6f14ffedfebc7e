"""The judge of work that two nodes have done: it is reported, and its answers are dealt once."""

from collections.abc import Iterator

from gateway.engine.deliveries import DUPLICATE
from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.plan import Fault
from gateway.judging.answers import given_twice
from outbox.ids import NodeId
from outbox.kinds import RULES, Kind
from outbox.records import DeliveryState, Received, Share

_ALL = 1_000_000
_STATES = tuple(DeliveryState)


def engaged_once(mesh: SimMesh) -> Iterator[Finding]:
    """What is for one agent is engaged at one node, or somebody says that it was not."""
    engaged: dict[tuple[NodeId, str], NodeId] = {}
    for name, home in mesh.homes.items():
        for agent in mesh.residents(name):
            for row in home.disk.inbox(agent.name, done=True, limit=_ALL):
                key = (row.source, row.event_id)
                if row.share is not Share.SOLE or not row.delivery_count:
                    continue  # for the agents of several nodes, or withdrawn in time
                other = engaged.setdefault(key, name)
                if (
                    other != name
                    and mesh.outcasts.isdisjoint((other, name))
                    and not _is_told(mesh, row, other, name)
                ):
                    what = f"{row.event_id} was engaged at {other} and {name}, and nobody says so"
                    yield Finding(Promise.ENGAGED_ONCE, what)


def answered_once(mesh: SimMesh, name: NodeId, disk: Disk) -> Iterator[Finding]:
    """What two nodes have answered was given to one agent once."""
    turns = (row for one in mesh.residents(name) for row in disk.inbox(one.name, done=True, limit=_ALL))
    for event, nodes in given_twice(turns, disk.deliveries(_STATES, _ALL)):
        yield Finding(Promise.ENGAGED_ONCE, f"{name} dealt the answers of {nodes} to {event}")


def _is_told(mesh: SimMesh, row: Received, *nodes: NodeId) -> bool:
    """Of a message its sender tells; of a reply who had it and reads that it went elsewhere as well.

    Whoever has told it may have gone back since. Who keeps little may have let go of a message that one node
    has ended before the other one's answer came.
    """
    kind, who = POSSIBLE_DUPLICATE, nodes
    if RULES[Kind(row.kind)].processed:
        kind, who = DUPLICATE, (row.source,)
        if Fault.RETENTION in mesh.plan.faults and not mesh.homes[row.source].disk.obligations(row.event_id):
            return True
    return any(past.incident(kind, row.event_id) for node in who for past in mesh.homes[node].histories())
