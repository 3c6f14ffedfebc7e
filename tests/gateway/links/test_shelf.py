"""What can be read from a node whose outbox has forgotten its beginning, has begun anew, or was put out."""

import pytest
from msgspec.structs import replace

from gateway.copies import Copies
from gateway.engine.effects import CopyChanged
from gateway.feed import Feed
from gateway.links.shelf import Shelf
from gateway.wire.frames import Stock
from outbox.chain import Checkpoint, Entry, Page, genesis
from outbox.envelope import EVERYONE, Header, encode_header
from outbox.errors import CursorBelowFloor
from outbox.forks import fold
from outbox.ids import Epoch, EventId, MeshId, NodeId, Seq
from outbox.memory import MemoryStore
from outbox.records import Identity
from stateroom.view import NodeView, RevocationView, View
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


B = NodeId("b")
LENGTH = 6


def copied(count: int = LENGTH, epoch: Epoch = FIRST, *, pages: int = 2) -> tuple[MemoryStore, list[Page]]:
    """What a node has written in one epoch, and the pages in which it was read."""
    writer = MemoryStore(Identity(MESH, B, epoch))
    at, read = writer.head(), []
    write(writer, count)
    while (page := writer.read(at, count // pages, 2**20)) is not None:
        read.append(page)
        at = page.checkpoint.head
    return writer, read


def shelf_of(view: View, pages: list[Page], *, recent: bool, trimmed: int = 0) -> Shelf:
    """A node that has copied these pages of ``b``; with ``recent`` it has them in memory too."""
    here = MemoryStore(Identity(MESH, A, FIRST))
    copies = Copies([])
    here.begin()
    for page in pages:
        copies.changed(CopyChanged(B, here.extend_copy(B, page, 0), page))
    if trimmed:
        (copy,) = here.copies()
        copies.changed(CopyChanged(B, here.trim_copy(copy, trimmed), None))
    here.commit()
    return Shelf(A, Feed(here.head()), copies if recent else Copies(here.copies()), here, lambda: view)


def put_out(last: Checkpoint | None, *, back: bool = False) -> View:
    word = RevocationView(node=B, public_key=b"", ban=False, by="seed", reason="", last=last, next_epoch=1000)
    again = {B: NodeView(node=B, public_key=b"new", role="member")} if back else {}
    return replace(NOBODY, nodes=again, revocations={B: (word,)})


def served(shelf: Shelf, after: int = 0) -> list[int]:
    """All places that can be read one page after another."""
    found: list[int] = []
    while (page := shelf.page(B, FIRST, Seq(after))) is not None:
        assert page.checkpoint.seq == page.entries[-1].seq
        assert fold(page.before, (entry.leaf for entry in page.entries)) == page.checkpoint.hash
        after = page.checkpoint.seq
        found += [entry.seq for entry in page.entries]
    return found


@pytest.mark.parametrize("recent", [True, False])
@pytest.mark.parametrize("seq", range(1, LENGTH + 3))
def test_of_who_was_put_out_nothing_is_offered_or_served_behind_the_end(seq: int, *, recent: bool) -> None:
    """Also by who had read more of it."""
    writer, _ = copied(LENGTH + 2, pages=LENGTH + 2)
    page = writer.read(genesis(MESH, B, FIRST), seq, 2**20)
    assert page is not None
    last = page.checkpoint
    shelf = shelf_of(put_out(last), copied()[1], recent=recent)
    upto = min(seq, LENGTH)
    offer = shelf.stock(B)
    assert offer is not None
    assert (offer.first, offer.last) == (1, upto)
    assert served(shelf) == list(range(1, upto + 1))
    if seq <= LENGTH:
        assert (offer.hash, offer.signature) == (last.hash, last.signature)
    assert [stock.node for stock in shelf.stocks(copies=True)] == [A, B]


@pytest.mark.parametrize("recent", [True, False])
def test_a_copy_that_begins_behind_the_end_is_of_no_use(*, recent: bool) -> None:
    _, pages = copied(pages=LENGTH)
    shelf = shelf_of(put_out(pages[1].checkpoint), pages, recent=recent, trimmed=3)
    assert shelf.stock(B) is None
    assert served(shelf, 3) == []


OTHER = Epoch("000001-cccccccccccc")


@pytest.mark.parametrize(
    "last",
    [
        None,
        Checkpoint(MESH, B, Epoch("000000-0123456789ab"), Seq(9), bytes(32), bytes(64)),
        Checkpoint(MESH, B, OTHER, Seq(9), bytes(32), bytes(64)),
        Checkpoint(MESH, B, FIRST, Seq(LENGTH), bytes(32), bytes(64)),
    ],
    ids=["nothing counts", "an earlier epoch", "another epoch of that number", "another history"],
)
@pytest.mark.parametrize("recent", [True, False])
def test_what_does_not_lead_to_the_end_is_neither_offered_nor_served(
    last: Checkpoint | None, *, recent: bool
) -> None:
    shelf = shelf_of(put_out(last), copied()[1], recent=recent)
    assert shelf.stock(B) is None
    assert served(shelf) == []
    assert [stock.node for stock in shelf.stocks(copies=True)] == [A]


def test_another_history_is_served_to_nobody_beyond_the_end_either() -> None:
    """Only who reads it sees that; it is found where the end is."""
    last = Checkpoint(MESH, B, FIRST, Seq(4), bytes(32), bytes(64))
    assert served(shelf_of(put_out(last), copied(pages=1)[1], recent=True)) == []


def test_a_whole_earlier_epoch_counts() -> None:
    last = Checkpoint(MESH, B, SECOND, Seq(1), bytes(32), bytes(64))
    shelf = shelf_of(put_out(last), copied()[1], recent=False)
    offer = shelf.stock(B)
    assert offer is not None
    assert offer.last == LENGTH
    assert served(shelf) == list(range(1, LENGTH + 1))


def test_what_was_signed_with_the_old_key_is_not_offered_when_the_name_is_back() -> None:
    _, pages = copied()
    assert shelf_of(put_out(pages[0].checkpoint, back=True), pages, recent=True).stock(B) is None
    assert shelf_of(put_out(None, back=True), pages, recent=True).stocks(copies=True)[1:] == []
    _, new = copied(epoch=Epoch("001000-0123456789ab"))
    offer = shelf_of(put_out(None, back=True), new, recent=True).stock(B)
    assert offer is not None
    assert offer.last == LENGTH


def test_nobody_vouches_for_an_outbox_under_a_key_that_is_out() -> None:
    _, pages = copied()
    here = MemoryStore(Identity(MESH, A, FIRST))
    here.begin()
    last = pages[-1].checkpoint
    here.put_cursor(B, last.head, last.signature)
    here.commit()

    def vouched(view: View) -> list[Stock]:
        return Shelf(A, Feed(here.head()), Copies([]), here, lambda: view).vouch(B)

    assert [stock.last for stock in vouched(NOBODY)] == [LENGTH]
    for back in (False, True):
        assert vouched(put_out(last, back=back)) == []
