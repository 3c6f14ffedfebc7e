from gateway.courier.item import Lease
from gateway.courier.voids import Voids
from outbox.ids import NodeId

A, B = NodeId("a"), NodeId("b")


def test_what_was_made_before_its_source_s_leases_ended_is_void_and_nothing_else() -> None:
    voids = Voids()
    made = [Lease("l0", None)]
    for source in (A, B, A):
        voids.end(source)
        made.append(Lease("l", None, made=voids.times))
    assert [voids.has(A, lease) for lease in made] == [True, True, True, False]
    assert [voids.has(B, lease) for lease in made] == [True, True, False, False]
    assert not voids.has(NodeId("c"), made[0])
