"""What can be read from a node whose outbox has forgotten its beginning, or has begun anew."""

import pytest

from gateway.copies import Copies
from gateway.feed import Feed
from gateway.links.shelf import Shelf
from outbox.chain import Entry
from outbox.envelope import EVERYONE, Header, encode_header
from outbox.errors import CursorBelowFloor
from outbox.ids import Epoch, EventId, MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Identity
from stateroom.view import View
from tests.appending import append

MESH, A = MeshId("m" * 43), NodeId("a")
FIRST, SECOND = Epoch("000001-0123456789ab"), Epoch("000002-0123456789ab")


def write(store: MemoryStore, count: int) -> None:
    """So many batches of one event each."""
    for _ in range(count):
        head = store.head()
        event = EventId(f"evt_{head.epoch[:6]}{head.seq:026x}")
        header = Header(event_id=event, kind="signal", to=EVERYONE, size=2)
        entries = (Entry(Seq(head.seq + 1), encode_header(header), b"{}"),)
        store.begin()
        append(store, entries, lambda _: bytes(64))
        store.commit()


def forget(store: MemoryStore, epoch: Epoch, seq: int) -> None:
    store.begin()
    store.move_floor(epoch, Seq(seq))
    store.commit()


@pytest.fixture
def store() -> MemoryStore:
    """Three entries of one epoch, of which two are forgotten, and two of the next."""
    made = MemoryStore(Identity(MESH, A, FIRST))
    write(made, 3)
    made.begin()
    made.begin_epoch(SECOND)
    made.commit()
    write(made, 2)
    forget(made, FIRST, 2)
    return made


NOBODY = View(version=1, mesh=MeshId("m"), nodes={}, agents={}, cursors={})


def places(store: MemoryStore, epoch: Epoch | None, after: int) -> list[tuple[str, int]]:
    page = Shelf(A, Feed(store.head()), Copies([]), store, lambda: NOBODY).page(A, epoch, Seq(after))
    return [] if page is None else [(page.epoch, entry.seq) for entry in page.entries]


def test_who_stands_nowhere_begins_in_the_current_epoch_whatever_is_forgotten_of_others(
    store: MemoryStore,
) -> None:
    """Version 1 of the frames has no other way past an epoch that its reader gave up (seed 30007)."""
    assert places(store, None, 0) == [(SECOND, 1), (SECOND, 2)]
    assert places(store, FIRST, 2) == [(FIRST, 3)]
    with pytest.raises(CursorBelowFloor):
        places(store, FIRST, 1)


def test_who_stands_nowhere_is_below_a_floor_of_the_current_epoch(store: MemoryStore) -> None:
    forget(store, SECOND, 1)
    with pytest.raises(CursorBelowFloor):
        places(store, None, 0)
    assert places(store, SECOND, 1) == [(SECOND, 2)]
