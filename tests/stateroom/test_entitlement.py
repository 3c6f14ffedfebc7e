"""Who could ever have a say about a key, whatever is admitted."""

import pytest

from stateroom.bodies import ROOT, RoomMap
from stateroom.entitlement import may_ever_count, place_of, speaker
from stateroom.records import parse_record


@pytest.mark.parametrize(
    ("make", "may"),
    [
        (lambda m: m.node("b"), True),
        (lambda m: m.record(RoomMap.NODES, "b", "c", None), False),
        (lambda m: m.cursors("b", {}), True),
        (lambda m: m.admission("b", by="c"), True),
        (lambda m: m.admission("b", by="c", role="seed"), False),
        (lambda m: m.admission("b", by=ROOT, role="seed"), True),
        (lambda m: m.agent("x", "b"), True),
        (lambda m: m.agent("x", "b", by="c"), False),
        (lambda m: m.fork_record(m.fork("b"), "nobody"), True),
        (lambda m: m.heartbeat("b", 1), False),
    ],
)
def test_some_records_could_count_and_others_never(mesh, make, may: bool) -> None:
    assert may_ever_count(parse_record(make(mesh))) is may


def test_a_fork_hangs_on_the_accused_and_all_else_on_its_signer(mesh) -> None:
    assert speaker(parse_record(mesh.fork_record(mesh.fork("b"), "c"))) == "b"
    node = parse_record(mesh.node("c"))
    assert (speaker(node), place_of(node)) == ("c", (mesh.id, RoomMap.NODES, "c"))
