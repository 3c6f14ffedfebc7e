import pytest

from gateway.links.entitlement import may_fetch
from outbox.envelope import Header, encode_header
from outbox.ids import EventId, NodeId
from outbox.records import Naming

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
