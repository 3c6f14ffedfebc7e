"""However long a peer reads nothing, what waits for it does not grow."""

from gateway.links.outgoing import Outgoing
from gateway.wire.frames import Filter, Have, Pong, Stock, Want
from gateway.wire.limits import HAVE_STREAMS_MAX
from outbox.ids import Epoch, NodeId

A, B, EPOCH = NodeId("a"), NodeId("b"), Epoch("000001-0123456789ab")


def stock(node: NodeId, last: int, *, complete: bool = True) -> Stock:
    return Stock(node, EPOCH, 1, last, bytes(32), complete)


def test_of_each_kind_and_stream_the_newest_leaves() -> None:
    outgoing = Outgoing()
    for number in range(1, 1_000):
        outgoing.pong = Pong(number, number)
        outgoing.have([stock(A, number), stock(B, number)])
        outgoing.want(Want(A, None, number, Filter.MINE, number))
    assert outgoing.take() == [
        Pong(999, 999),
        Have((stock(A, 999), stock(B, 999))),
        Want(A, None, 999, Filter.MINE, 999),
    ]
    assert outgoing.take() == []


def test_what_is_known_of_a_stream_is_said_beside_what_is_to_be_read_of_it() -> None:
    outgoing = Outgoing()
    outgoing.have([stock(A, 7), stock(A, 9, complete=False)])
    outgoing.have([stock(A, 8)])
    assert outgoing.take() == [Have((stock(A, 9, complete=False), stock(A, 8)))]


def test_nothing_at_all_is_said_too_and_many_in_several_frames() -> None:
    outgoing = Outgoing()
    outgoing.have([])
    assert outgoing.take() == [Have(())]
    many = [stock(NodeId(f"n{number}"), 1) for number in range(HAVE_STREAMS_MAX + 1)]
    outgoing.have(many)
    assert outgoing.take() == [Have(tuple(many[:-1]), more=True), Have((many[-1],))]
