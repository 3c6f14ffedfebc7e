"""Frames that the tests of the wire share."""

from hashlib import sha256

import pytest

from gateway.wire.frames import Bye, Entries, Frame, Have, Hello, Ping, Pong, Seen, Want
from outbox.chain import Checkpoint, Entry, Page
from outbox.ids import Epoch, MeshId, NodeId, Seq

MESH, NODE, EPOCH = MeshId("m" * 43), NodeId("vps"), Epoch("000001-0123456789ab")


def make_page(first: int, *parts: tuple[bytes, bytes]) -> Page:
    entries = tuple(Entry(Seq(first + place), header, body) for place, (header, body) in enumerate(parts))
    digest = sha256(b"head").digest()
    return Page(EPOCH, entries, Checkpoint(MESH, NODE, EPOCH, entries[-1].seq, digest, digest + digest))


@pytest.fixture
def page() -> Page:
    return make_page(41, (b'{"eventId":"x"}', b'{"v":1,"text":"na\xc3\xafve"}'), (b"{}", b""))


@pytest.fixture
def frames(page: Page) -> dict[str, Frame]:
    """One of each frame, by name."""
    digest = sha256(b"head").digest()
    return {
        "hello": Hello(1, (1,), NODE, MESH, 1_795_000_000_000),
        "have": Have(NODE, EPOCH, 42, digest),
        "want": Want(NODE, EPOCH, 40),
        "want-beginning": Want(NODE, None, 0),
        "entries": Entries(NODE, page),
        "seen": Seen(NODE, EPOCH, 42),
        "ping": Ping(123_456),
        "pong": Pong(123_456, 1_795_000_000_123),
        "bye": Bye("version", "update the older gateway"),
    }
