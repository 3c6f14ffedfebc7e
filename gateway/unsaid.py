"""What the state room does not hold of this node's agents, or holds otherwise than the journal.

The room is another file than the journal, and others remember what was said there: after a crash between a
commit and its publication, or when a backup was put back, the two disagree. The journal is right.
"""

from collections.abc import Iterable, Iterator

from gateway.engine.effects import AgentChanged, agent_changed
from outbox.ids import NodeId
from outbox.records import LocalAgent
from stateroom.view import OwnerView, View


def unsaid(view: View, node: NodeId, agents: Iterable[LocalAgent]) -> Iterator[AgentChanged]:
    """What has to be said so that the room shows ``agents``, all that live on ``node`` by its journal.

    Nothing of those that another node has come to own.
    """
    here = {row.name: row for row in agents if not row.stands_in_for}
    for row in here.values():
        known = view.agents.get(row.name)
        theirs = known is not None and (known.node != node or known.owner_epoch > row.owner_epoch)
        if not theirs and known != _record(row, node):
            yield agent_changed(0, row, active=True)
    for name, known in view.agents.items():
        if known.node == node and known.status == "active" and name not in here:
            yield AgentChanged(0, name, known.owner_epoch, active=False, fallback=known.fallback)


def _record(row: LocalAgent, node: NodeId) -> OwnerView:
    return OwnerView(
        agent=row.name,
        node=node,
        owner_epoch=row.owner_epoch,
        status="active",
        fallback=row.fallbacks,
        grace_ms=row.grace_ms,
        groups=row.member_of,
    )
