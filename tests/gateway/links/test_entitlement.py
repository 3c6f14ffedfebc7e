import pytest
from msgspec.structs import replace

from gateway.links.entitlement import check_filter, check_peer, check_version, may_fetch
from gateway.links.errors import PeerRevoked, ReaderRefused, VersionRefused
from gateway.wire.frames import Filter, Want
from outbox.envelope import Header, encode_header
from outbox.ids import EventId, NodeId
from outbox.records import Naming
from stateroom.view import NodeView, RevocationView, View

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")


def naming(source: NodeId, to: tuple[NodeId, ...] | str) -> Naming:
    return Naming(source, encode_header(Header(event_id=EventId("evt_x"), kind="message", to=to, size=1)))


@pytest.mark.parametrize(
    ("namings", "reads_all", "allowed"),
    [
        ([], {A}, False),
        ([naming(A, (B,))], set(), True),
        ([naming(A, (C,))], set(), False),
        ([naming(A, "*")], set(), True),
        ([naming(A, ())], set(), False),
        ([naming(A, (C,)), naming(C, (B, A))], set(), True),
        ([naming(A, (C,))], {A}, True),
        ([naming(A, (C,))], {C}, False),
        ([Naming(A, b"no header")], set(), False),
    ],
)
def test_who_may_read_an_event_may_fetch_its_blob(
    namings: list[Naming], reads_all: set[NodeId], allowed: bool
) -> None:
    assert may_fetch(B, namings, reads_all.__contains__) is allowed


VIEW = View(
    version=1,
    mesh="m",
    nodes={
        "seed": NodeView(node="seed", public_key=b"", role="seed"),
        "mirror": NodeView(node="mirror", public_key=b"", role="member", reads_all=True),
        "member": NodeView(node="member", public_key=b"", role="member"),
    },
    agents={},
    cursors={},
)


@pytest.mark.parametrize("peer", ["seed", "mirror"])
@pytest.mark.parametrize("which", Filter)
def test_who_was_admitted_for_it_reads_all(peer: str, which: Filter) -> None:
    check_filter(Want(A, None, 0, which), NodeId(peer), VIEW)


@pytest.mark.parametrize("peer", ["member", "stranger"])
def test_nobody_else_reads_what_is_for_others(peer: str) -> None:
    for which in (Filter.MINE, Filter.NONE):
        check_filter(Want(A, None, 0, which), NodeId(peer), VIEW)
    with pytest.raises(ReaderRefused, match=peer) as refused:
        check_filter(Want(A, None, 0, Filter.ALL), NodeId(peer), VIEW)
    assert "--reads-all" in refused.value.hint


@pytest.mark.parametrize("peer", ["member", "stranger"])
def test_version_1_has_no_filter_and_is_for_who_may_read_all(peer: str) -> None:
    for entitled in ("seed", "mirror"):
        check_version(1, NodeId(entitled), VIEW)
    check_version(2, NodeId(peer), VIEW)
    with pytest.raises(VersionRefused, match="what is for others") as refused:
        check_version(1, NodeId(peer), VIEW)
    assert "--reads-all" in refused.value.hint


def test_a_link_is_for_everybody_whose_key_was_not_revoked() -> None:
    out, back = (
        RevocationView(node=node, public_key=b"", ban=False, by="seed", reason="", last=None, next_epoch=1000)
        for node in ("out", "member")
    )
    view = replace(VIEW, revocations={"out": (out,), "member": (back,)})
    for peer in ("seed", "member", "stranger"):
        check_peer(NodeId(peer), view)
    with pytest.raises(PeerRevoked, match="the key of out was revoked") as refused:
        check_peer(NodeId("out"), view)
    assert "operator of a seed" in refused.value.hint
    assert not refused.value.retryable
