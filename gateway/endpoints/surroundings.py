"""Links, presence and announced maintenance of the other nodes, looked at once for a whole answer. Core."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from gateway.api.delivery_state import shown_state, unaccepted_state
from gateway.api.mesh import LinkState, LinkStatus
from gateway.engine.maintenance import MAINTENANCE, Announced, announced, is_away
from outbox.ids import NodeId
from outbox.records import Delivery, Incident
from stateroom.view import View


class Surroundings(NamedTuple):
    """The other nodes as this one sees them at one moment; other threads may read it."""

    here: NodeId
    wall_ms: int
    view: View
    links: Mapping[NodeId, LinkStatus]
    announced: Mapping[NodeId, Announced]
    """What nodes have said of their maintenance and not ended."""

    @classmethod
    def of(
        cls,
        here: NodeId,
        wall_ms: int,
        view: View,
        links: Iterable[LinkStatus],
        open_incidents: Iterable[Incident],
    ) -> Self:
        """From what the parts of a gateway say."""
        said = {NodeId(row.subject): announced(row) for row in open_incidents if row.kind == MAINTENANCE}
        return cls(here, wall_ms, view, {link.node: link for link in links}, said)

    def state_of(self, row: Delivery) -> str:
        """How a delivery is shown."""
        local, online, linked, away = self._reach(row.node)
        return shown_state(row, local=local, online=online, linked=linked, away=away)

    def unaccepted(self, node: NodeId | None) -> str:
        """How events are shown that nobody has accepted and that stand at a node, or at none."""
        local, online, linked, away = self._reach(node)
        return unaccepted_state(node, local=local, online=online, linked=linked, away=away)

    def _reach(self, node: NodeId | None) -> tuple[bool, bool, bool, bool]:
        if node is None:
            return False, False, False, False
        link = self.links.get(node)
        return (
            node == self.here,
            self.view.online(node),
            link is not None and link.state is LinkState.UP,
            is_away(self.announced.get(node), self.wall_ms),
        )
