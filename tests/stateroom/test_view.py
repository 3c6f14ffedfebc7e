import msgspec

from outbox.ids import AgentId, NodeId
from stateroom.picture import Seen
from stateroom.view import View


def test_a_view_survives_json(mesh) -> None:
    index = mesh.index("b", "c")
    for room_map, key, text in (
        ("nodes", "b", mesh.node("b", head_seq=3)),
        ("agents", "x", mesh.agent("x", "b")),
        ("agents", "gone", mesh.agent("gone", "b", status="removed")),
        ("cursors", "c", mesh.cursors("c", {"b": ("000001-0123456789ab", 3)})),
    ):
        index.offer(room_map, key, text)
    view = index.view({NodeId("c"): Seen(True, 12)})
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view
    assert view.owner(AgentId("x")).node == "b"
    assert (view.owner(AgentId("gone")), view.known(AgentId("gone"))) == (None, True)
    assert (view.owner(AgentId("y")), view.known(AgentId("y"))) == (None, False)
    assert view.cursor(NodeId("c"), NodeId("b")) == ("000001-0123456789ab", 3)
    assert view.cursor(NodeId("b"), NodeId("c")) is None
    assert view.cursor(NodeId("c"), NodeId("c")) is None
    assert (view.online(NodeId("c")), view.online(NodeId("b")), view.online(NodeId("zz"))) == (
        True,
        False,
        False,
    )
    assert len(view.node(NodeId("b")).public_key) == 32
    assert view.node(NodeId("zz")) is None
    assert [node.node for node in view.peers(NodeId("c"))] == ["b", "seed"]
