"""What may still be taken of a node whose key was revoked: a page by page view of it."""

import pytest

from gateway.engine.revoked import check_speaks, cut, is_read, nobody
from outbox.chain import Checkpoint, Entry, Excerpt, Head
from outbox.errors import NodeRevoked
from outbox.ids import AgentId, Epoch, MeshId, NodeId, Seq
from stateroom.view import NodeView, OwnerView, RevocationView, View

B = NodeId("b")
MESH = MeshId("m")
FIRST, SECOND, OTHER = (
    Epoch(text) for text in ("000001-aaaaaaaaaaaa", "000002-bbbbbbbbbbbb", "000002-cccccccccccc")
)
NEXT = Epoch("001000-dddddddddddd")


def place(epoch: Epoch, seq: int, digest: bytes = bytes(32)) -> Checkpoint:
    return Checkpoint(MESH, B, epoch, Seq(seq), digest, bytes(64))


def view(last: Checkpoint | None, *, back: bool = False) -> View:
    word = RevocationView(
        node=B, public_key=b"", ban=False, by="seed", reason="lost", last=last, next_epoch=1000
    )
    return View(
        version=1,
        mesh=MESH,
        nodes={B: NodeView(node=B, public_key=b"new", role="member")} if back else {},
        agents={AgentId("bob"): OwnerView(agent=AgentId("bob"), node=B, owner_epoch=1, status="active")},
        cursors={},
        revocations={B: (word,)},
    )


def page(epoch: Epoch, first: int, last: int, digest: bytes = bytes(32)) -> Excerpt:
    entries = tuple(Entry(Seq(seq), b"h", b"b") for seq in range(first, last + 1))
    return Excerpt(epoch, entries, place(epoch, last, digest))


@pytest.mark.parametrize(
    ("last", "taken", "upto"),
    [
        (place(SECOND, 5), page(FIRST, 1, 9), 9),
        (place(SECOND, 5), page(SECOND, 1, 4), 4),
        (place(SECOND, 5), page(SECOND, 3, 5), 5),
        (place(SECOND, 5), page(SECOND, 3, 8), 5),
        (place(SECOND, 5), page(SECOND, 6, 8), None),
        (place(SECOND, 5), page(SECOND, 3, 5, b"x" * 32), None),
        (place(SECOND, 5), page(OTHER, 1, 3), None),
        (place(FIRST, 5), page(SECOND, 1, 1), None),
        (None, page(FIRST, 1, 1), None),
    ],
)
def test_nothing_behind_the_last_place_is_taken(
    last: Checkpoint | None, taken: Excerpt, upto: int | None
) -> None:
    left = cut(view(last), B, taken)
    assert (left and left.checkpoint.seq) == upto
    assert left is None or left.entries[-1].seq == upto


def test_who_came_back_is_read_in_its_new_epochs_and_not_in_the_old_ones() -> None:
    there = view(place(FIRST, 5), back=True)
    assert cut(there, B, page(NEXT, 1, 3)) == page(NEXT, 1, 3)
    assert cut(there, B, page(SECOND, 1, 3)) is None
    assert cut(there, NodeId("c"), page(FIRST, 1, 3)) == page(FIRST, 1, 3)


def test_reading_ends_at_the_last_place() -> None:
    there = view(place(SECOND, 5))
    assert not is_read(there, B, None)
    assert not is_read(there, B, Head(SECOND, Seq(4), b""))
    assert not is_read(there, B, Head(FIRST, Seq(9), b""))
    assert is_read(there, B, Head(SECOND, Seq(5), b""))
    assert is_read(view(None), B, None)
    assert is_read(there, NodeId("c"), None)


def test_a_node_that_is_out_is_told_so() -> None:
    with pytest.raises(NodeRevoked, match="by seed: lost"):
        check_speaks(view(None), B)
    check_speaks(view(None, back=True), B)


def test_why_nobody_answers() -> None:
    assert nobody(view(None), AgentId("bob")) == "node_revoked"
    assert nobody(view(None, back=True), AgentId("bob")) == "no_owner"
    assert nobody(view(None), AgentId("eve")) == "no_owner"
