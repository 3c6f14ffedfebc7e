"""What a peer reads: streams take turns, a later want replaces an earlier one."""

import pytest

from gateway.links.serving import Serving
from gateway.wire.frames import Filter, Want
from outbox.errors import BadFrame
from outbox.ids import Epoch, NodeId, Seq

EPOCH = Epoch("000001-0123456789ab")
A, B = NodeId("a"), NodeId("b")


def test_streams_take_turns() -> None:
    serving = Serving()
    serving.want(Want(A, None, 0, Filter.ALL, 1))
    serving.want(Want(B, EPOCH, 7, Filter.MINE, 2))
    order = []
    for seq in range(4):
        turn = serving.next()
        assert turn is not None
        order.append(turn[0])
        serving.sent(turn[0], EPOCH, Seq(10 + seq))
    assert order == [A, B, A, B]
    turn = serving.next()
    assert turn is not None
    assert (turn[1].after, turn[1].epoch, turn[1].filter) == (12, EPOCH, Filter.ALL)


def test_a_stream_without_more_waits_until_it_grows() -> None:
    serving = Serving()
    assert serving.next() is None
    assert not serving.grown(A)
    serving.want(Want(A, None, 0))
    serving.idle(A)
    assert serving.next() is None
    assert serving.grown(A)
    assert serving.next() is not None


def test_a_reader_may_move_and_leave() -> None:
    serving = Serving()
    serving.want(Want(A, EPOCH, 9, Filter.ALL, 1))
    serving.want(Want(A, EPOCH, 4, Filter.ALL, 3))
    turn = serving.next()
    assert turn is not None
    assert (turn[1].after, turn[1].ask) == (4, 3)
    serving.want(Want(A, None, 0, Filter.NONE, 4))
    assert serving.next() is None
    assert not serving.grown(A)
    serving.drop(B)


@pytest.mark.parametrize("ask", [1, 2])
def test_a_want_has_a_new_number(ask: int) -> None:
    serving = Serving()
    serving.want(Want(A, None, 0, Filter.ALL, 2))
    with pytest.raises(BadFrame):
        serving.want(Want(B, None, 0, Filter.ALL, ask))
