"""Whose deliveries end, and when."""

from gateway.engine.endings import Endings
from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from outbox.ids import MeshId, NodeId
from stateroom.view import NodeView, RevocationView, View

A, B = NodeId("a"), NodeId("b")


def word(node: NodeId) -> RevocationView:
    return RevocationView(
        node=node, public_key=b"", ban=False, by="seed", reason="", last=None, next_epoch=1000
    )


def view(*out: NodeId, admitted: tuple[NodeId, ...] = ()) -> View:
    return View(
        version=1,
        mesh=MeshId("m"),
        nodes={node: NodeView(node=node, public_key=b"k", role="member") for node in admitted},
        agents={},
        cursors={},
        revocations={node: (word(node),) for node in out},
    )


def test_each_is_found_once_and_not_this_node() -> None:
    endings = Endings()
    assert endings.see(view(A, B), A, 0) == [B]
    assert endings.see(view(A, B), A, 5) == []
    assert endings.awaits(B)


def test_who_was_read_to_its_end_is_waited_for_no_longer() -> None:
    endings = Endings()
    endings.see(view(B), A, 0)
    assert endings.next_ms() == ENDED_UNREAD_AFTER_MS
    endings.end(B)
    endings.end(B)
    assert (endings.awaits(B), endings.next_ms()) == (False, None)
    assert endings.see(view(B), A, 9) == []


def test_nobody_waits_for_ever() -> None:
    endings = Endings()
    endings.see(view(B), A, 0)
    assert endings.due(ENDED_UNREAD_AFTER_MS - 1) == []
    assert endings.due(ENDED_UNREAD_AFTER_MS) == [B]


def test_who_comes_back_with_another_key_is_out_no_more() -> None:
    endings = Endings()
    endings.see(view(B), A, 0)
    assert endings.see(view(B, admitted=(B,)), A, 1) == []
    assert not endings.awaits(B)
    assert endings.see(view(B), A, 2) == [B]
