"""Frames that the tests of the wire share."""

from hashlib import sha256

import pytest

from gateway.wire.frames import (
    BlobNone,
    BlobPiece,
    BlobRefusal,
    BlobWant,
    Bye,
    Credit,
    Entries,
    Filter,
    Floor,
    Frame,
    Have,
    Hello,
    Ping,
    Pong,
    Seen,
    Stock,
    Want,
)
from outbox.blobref import BlobId
from outbox.chain import Checkpoint, Entry, Excerpt, Stub
from outbox.ids import Epoch, MeshId, NodeId, Seq

SHA = BlobId("ab" * 32)
MESH, NODE, EPOCH = MeshId("m" * 43), NodeId("vps"), Epoch("000001-0123456789ab")


def make_page(first: int, *parts: tuple[bytes, bytes]) -> Excerpt:
    entries = tuple(Entry(Seq(first + place), header, body) for place, (header, body) in enumerate(parts))
    digest = sha256(b"head").digest()
    return Excerpt(EPOCH, entries, Checkpoint(MESH, NODE, EPOCH, entries[-1].seq, digest, digest + digest))


@pytest.fixture
def page() -> Excerpt:
    return make_page(41, (b'{"eventId":"x"}', b'{"v":1,"text":"na\xc3\xafve"}'), (b"{}", b""))


@pytest.fixture
def frames() -> dict[str, Frame]:
    """One of each frame of today, by name."""
    digest = sha256(b"head").digest()
    copied = make_page(41, (b"{}", b"body"), (b'{"to":["lab"]}', b"")).entries
    stubbed = (copied[0], Stub(Seq(42), copied[1].header, digest))
    checkpoint = Checkpoint(MESH, NodeId("mbp"), EPOCH, Seq(42), digest, digest + digest)
    stocks = (
        Stock(NODE, EPOCH, 1, 42, digest, signature=digest + digest),
        Stock(NodeId("mbp"), EPOCH, 7, 9, digest, complete=False),
    )
    return {
        "hello": Hello(2, (1, 2), NODE, MESH, 1_795_000_000_000),
        "have": Have(stocks),
        "have-more": Have((), more=True),
        "want": Want(NODE, EPOCH, 40, Filter.MINE, 3),
        "want-beginning": Want(NODE, None, 0),
        "want-none": Want(NODE, None, 0, Filter.NONE, 4),
        "entries": Entries(NodeId("mbp"), Excerpt(EPOCH, stubbed, checkpoint), 7),
        "floor": Floor(NODE, 3, EPOCH, 41, digest, digest + digest),
        "seen": Seen(NODE, EPOCH, 42),
        "credit": Credit(524_288),
        "blob-want": BlobWant(SHA, 65_536, 4_096),
        "blob": BlobPiece(SHA, 65_536, 70_000, b"\x00bytes\xff"),
        "blob-none": BlobNone(SHA, BlobRefusal.FORBIDDEN),
        "ping": Ping(123_456),
        "pong": Pong(123_456, 1_795_000_000_123),
        "bye": Bye("version", "update the older gateway"),
    }


@pytest.fixture
def frames1(page: Excerpt) -> dict[str, Frame]:
    """One of each frame of version 1, by name."""
    digest = sha256(b"head").digest()
    return {
        "hello": Hello(1, (1,), NODE, MESH, 1_795_000_000_000),
        "have": Have((Stock(NODE, EPOCH, 1, 42, digest),)),
        "want": Want(NODE, EPOCH, 40),
        "want-beginning": Want(NODE, None, 0),
        "entries": Entries(NODE, page),
        "seen": Seen(NODE, EPOCH, 42),
        "ping": Ping(123_456),
        "pong": Pong(123_456, 1_795_000_000_123),
        "bye": Bye("version", "update the older gateway"),
    }
