from outbox.ids import NodeId
from stateroom.bodies import NodeBody
from stateroom.picture import Admitted, Seen, node_view

ADMITTED = Admitted(b"k" * 32, "member", by_root=False)
BODY = NodeBody(endpoints=("http://old",), outbox_epoch="", head_seq=3, head_hash="ab", software="s")


def test_a_node_that_has_published_nothing_is_still_a_node() -> None:
    view = node_view(NodeId("b"), ADMITTED, None, None)
    assert (view.endpoints, view.outbox_epoch, view.online, view.public_key) == ((), None, False, b"k" * 32)


def test_endpoints_of_a_heartbeat_go_before_those_of_the_record() -> None:
    assert node_view(NodeId("b"), ADMITTED, BODY, Seen(True, 1)).endpoints == ("http://old",)
    assert node_view(NodeId("b"), ADMITTED, BODY, Seen(True, 1, (), ("http://new",))).endpoints == (
        "http://new",
    )
