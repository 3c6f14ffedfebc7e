"""Version 1 says less: what it cannot say does not leave."""

import pytest

from gateway.wire.codec import decode, encode
from gateway.wire.frames import Credit, Entries, Filter, Frame, Have, Stock, Want
from outbox.chain import Excerpt, Stub
from outbox.errors import BadFrame
from outbox.ids import Epoch, NodeId, Seq

EPOCH = Epoch("000001-0123456789ab")
STOCK = Stock(NodeId("vps"), EPOCH, 1, 7, b"\x01" * 32)


@pytest.mark.parametrize(
    "frame",
    [
        Credit(1),
        Have(()),
        Have((STOCK, STOCK)),
        Have((STOCK,), more=True),
        Want(NodeId("vps"), None, 0, Filter.MINE),
        Want(NodeId("vps"), None, 0, Filter.NONE),
        Want(NodeId("vps"), None, 0, Filter.ALL, 2),
    ],
    ids=repr,
)
def test_what_it_cannot_say_is_refused(frame: Frame) -> None:
    with pytest.raises(BadFrame):
        encode(frame, 1)


def test_every_body_travels(page: Excerpt) -> None:
    stub = Stub(Seq(42), b"{}", b"h" * 32)
    part = Excerpt(page.epoch, (page.entries[0], stub), page.checkpoint)
    with pytest.raises(BadFrame):
        encode(Entries(NodeId("vps"), part), 1)
    with pytest.raises(BadFrame):
        encode(Entries(NodeId("vps"), page, 2), 1)
    with pytest.raises(BadFrame):
        decode(encode(Entries(NodeId("vps"), part)), 1)


def test_what_it_says_is_the_same_in_the_records_of_today(frames1: dict[str, Frame]) -> None:
    for frame in frames1.values():
        assert decode(encode(frame, 1), 1) == frame
        assert decode(encode(frame)) == frame
