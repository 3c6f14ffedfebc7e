"""The keys of members: those of the moment, and of who was put out."""

from msgspec.structs import replace

from auth.keys import SigningKey
from gateway.links.keys import MemberKeys
from outbox.ids import MeshId, NodeId
from stateroom.view import NodeView, RevocationView, View

OLD, NEW = SigningKey(bytes(32)), SigningKey(b"\x01" * 32)
MBP = NodeId("mbp")
EMPTY = View(version=1, mesh=MeshId("m" * 43), nodes={}, agents={}, cursors={})


def admitted(key: bytes) -> View:
    return replace(EMPTY, nodes={MBP: NodeView(node=MBP, public_key=key, role="member")})


def signed_by(view: View) -> list[SigningKey]:
    """Whose signature counts as that node's."""
    verify = MemberKeys(lambda: view)(MBP)
    return [key for key in (OLD, NEW) if verify is not None and verify(key.sign(b"x"), b"x")]


def test_nobody_who_was_never_admitted_and_nobody_whose_key_is_none() -> None:
    assert MemberKeys(lambda: EMPTY)(MBP) is None
    assert MemberKeys(lambda: admitted(bytes(32)))(MBP) is None


def test_the_key_of_now_counts_from_the_moment_that_the_room_says_so() -> None:
    view = admitted(OLD.public.raw)
    keys = MemberKeys(lambda: view)
    first = keys(MBP)
    assert first is not None
    assert first(OLD.sign(b"x"), b"x")
    assert keys(MBP) == first, "checked once"
    view = admitted(NEW.public.raw)
    later = keys(MBP)
    assert later is not None
    assert later(NEW.sign(b"x"), b"x")
    assert not later(OLD.sign(b"x"), b"x")


def test_what_a_node_had_signed_before_it_was_put_out_still_counts_until_its_name_comes_back() -> None:
    assert signed_by(admitted(OLD.public.raw)) == [OLD]
    word = RevocationView(
        node=MBP, public_key=OLD.public.raw, ban=False, by="vps", reason="lost", last=None, next_epoch=2
    )
    assert signed_by(replace(EMPTY, revocations={MBP: (word,)})) == [OLD]
    assert signed_by(replace(admitted(NEW.public.raw), revocations={MBP: (word,)})) == [NEW]
