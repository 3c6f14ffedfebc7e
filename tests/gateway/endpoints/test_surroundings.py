"""Rows are shown beside what links, presence and maintenance were when the answer was begun."""

import pytest

from gateway.api.delivery_state import WAITING_FOR_LINK, WAITING_FOR_MAINTENANCE, WAITING_FOR_OWNER
from gateway.api.mesh import LinkState, LinkStatus
from gateway.endpoints.surroundings import Surroundings
from gateway.engine.maintenance import MAINTENANCE
from outbox.ids import MeshId, NodeId
from outbox.records import DeliveryState, Incident
from stateroom.view import NodeView, View
from tests.gateway.api.test_delivery_state import row

HERE, LAB = NodeId("vps"), NodeId("lab")
UNTIL = "until 2026-11-29T00:00:00.000Z: new disk"
UNTIL_MS = 1_795_910_400_000


def around(
    *, online: bool = True, link: LinkState = LinkState.UP, said: str | None = None, wall_ms: int = 0
) -> Surroundings:
    nodes = {
        HERE: NodeView(node=HERE, public_key=b"", role="root", online=True),
        LAB: NodeView(node=LAB, public_key=b"", role="member", online=online),
    }
    view = View(version=1, mesh=MeshId("mesh-" + "x" * 38), nodes=nodes, agents={}, cursors={})
    links = [LinkStatus(node=LAB, state=link, since_ms=0, dialled_by="us")]
    incidents = [Incident(kind="late", subject="lab", opened_at_ms=0, detail="")]
    if said is not None:
        incidents.append(Incident(kind=MAINTENANCE, subject="lab", opened_at_ms=0, detail=said))
    return Surroundings.of(HERE, wall_ms, view, links, incidents)


@pytest.mark.parametrize(
    ("seen", "node", "shown"),
    [
        (around(), "lab", "emitted"),
        (around(), "vps", "emitted"),
        (around(), None, WAITING_FOR_OWNER),
        (around(), "nobody", WAITING_FOR_OWNER),
        (around(online=False), "lab", WAITING_FOR_OWNER),
        (around(link=LinkState.DOWN), "lab", WAITING_FOR_LINK),
        (around(link=LinkState.CONNECTING), "lab", WAITING_FOR_LINK),
        (around(link=LinkState.DOWN, said=UNTIL), "lab", WAITING_FOR_MAINTENANCE),
        (around(link=LinkState.DOWN, said=UNTIL, wall_ms=UNTIL_MS), "lab", WAITING_FOR_LINK),
        (around(online=False, said="until it says that it is over"), "lab", WAITING_FOR_MAINTENANCE),
        (around(said=UNTIL), "lab", "emitted"),
    ],
)
def test_a_row_and_a_count_are_shown_alike(seen: Surroundings, node: str | None, shown: str) -> None:
    assert seen.unaccepted(NodeId(node) if node is not None else None) == shown
    assert seen.state_of(row(DeliveryState.EMITTED, node)) == shown


def test_what_was_answered_is_shown_as_it_is() -> None:
    assert around(online=False).state_of(row(DeliveryState.REPLIED)) == DeliveryState.REPLIED
