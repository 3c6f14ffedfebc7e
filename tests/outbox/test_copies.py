"""Copies of other outboxes: what both stores promise about them."""

from typing import Any

import pytest
from msgspec.structs import replace

from outbox.chain import Checkpoint, Entry, Head, Page, extend, follow, genesis, sign_checkpoint
from outbox.errors import CursorBelowFloor, CursorPastEnd, InvalidCursor, StorageFailed
from outbox.ids import Epoch, MeshId, NodeId, Seq, make_event_id
from outbox.journal import Journal
from outbox.memory import MemoryStore
from outbox.reader import JournalReader
from outbox.store import Store

FIRST, SECOND = Epoch("000001-0123456789ab"), Epoch("000002-0123456789ab")
MBP, LAB = NodeId("mbp"), NodeId("lab")


class Stream:
    """Another node's outbox, page by page."""

    def __init__(self, mesh: MeshId, node: NodeId = MBP, epoch: Epoch = FIRST) -> None:
        self.mesh, self.node = mesh, node
        self.header = b"{}"
        self.head = genesis(mesh, node, epoch)

    def page(self, *bodies: bytes) -> Page:
        entries = tuple(
            Entry(Seq(self.head.seq + place), self.header, body) for place, body in enumerate(bodies, 1)
        )
        before, self.head = self.head, extend(self.head, entries)
        checkpoint = sign_checkpoint(self.mesh, self.node, self.head, lambda _: b"s")
        return Page(self.head.epoch, entries, checkpoint, before.hash)


@pytest.fixture
def stream(world: Any) -> Stream:
    return Stream(world.identity.mesh)


def keep(store: Store, node: NodeId, page: Page, now_ms: int = 0) -> None:
    store.begin()
    store.extend_copy(node, page, now_ms)
    store.commit()


def walk(store: Store, start: Head, entries_max: int = 1, node: NodeId = MBP) -> list[tuple[str, bytes]]:
    """All bodies after a cursor, followed as a reader would."""
    head, found = start, []
    while (page := store.read_copy(node, head, entries_max, 1 << 20)) is not None:
        if page.epoch != head.epoch:
            head = genesis(store.identity().mesh, node, page.epoch)
        head = follow(head, page)
        found += [(page.epoch[:6], entry.body) for entry in page.entries]
    return found


def test_a_copy_grows_and_is_read_as_it_was_written(store: Store, stream: Stream) -> None:
    start = stream.head
    assert store.copies() == []
    assert store.copy(MBP) is None
    assert store.read_copy(MBP, start, 9, 9) is None
    pages = [stream.page(b"a", b"bb"), stream.page(b"\x00\xff"), stream.page(b"", b"e")]
    for page in pages:
        keep(store, MBP, page, 7)
    copy = store.copy(MBP)
    assert copy is not None
    assert (copy.first, copy.last, copy.hash, copy.oldest_at_ms) == (1, 5, stream.head.hash, 7)
    assert copy.bytes == 5 * 2 + 6
    assert store.copies() == [copy]
    assert [body for _, body in walk(store, start)] == [b"a", b"bb", b"\x00\xff", b"", b"e"]
    assert store.read_copy(MBP, start, 100, 1 << 20) == Page(
        FIRST, tuple(entry for page in pages for entry in page.entries), pages[-1].checkpoint, start.hash
    )
    middle = store.read_copy(MBP, Head(FIRST, Seq(1), b""), 1, 1)
    assert middle is not None
    assert [entry.seq for entry in middle.entries] == [2], "a reader may stand inside a batch"


def test_what_was_not_committed_is_no_copy(store: Store, stream: Stream) -> None:
    keep(store, MBP, stream.page(b"a"))
    kept = store.copy(MBP)
    store.begin()
    store.extend_copy(MBP, stream.page(b"b"), 0)
    store.extend_copy(LAB, Stream(stream.mesh, LAB).page(b"c"), 0)
    store.rollback()
    assert store.copies() == [kept]
    keep(store, LAB, Stream(stream.mesh, LAB).page(b"d"))
    assert [copy.source for copy in store.copies()] == [LAB, MBP]
    store.begin()
    trimmed = store.trim_copy(store.copies()[0], 1)
    store.rollback()
    assert trimmed is None
    assert walk(store, genesis(stream.mesh, LAB, FIRST), node=LAB) == [("000001", b"d")]


def test_nothing_is_kept_outside_a_transaction(store: Store, stream: Stream) -> None:
    with pytest.raises(StorageFailed):
        store.extend_copy(MBP, stream.page(b"a"), 0)


def test_a_copy_with_a_hole_is_begun_anew(store: Store, stream: Stream) -> None:
    start = stream.head
    keep(store, MBP, stream.page(b"a", b"b"))
    stream.page(b"never came")
    keep(store, MBP, stream.page(b"d"), 9)
    copy = store.copy(MBP)
    assert copy is not None
    assert (copy.first, copy.last, copy.oldest_at_ms) == (4, 4, 9)
    with pytest.raises(CursorBelowFloor):
        store.read_copy(MBP, start, 9, 9)
    assert walk(store, Head(FIRST, Seq(4), b"")) == []


def test_a_copy_is_trimmed_at_its_beginning_by_whole_batches(store: Store, stream: Stream) -> None:
    for number in range(4):
        keep(store, MBP, stream.page(b"x" * number, b"y"), number)
    copy = store.copy(MBP)
    assert copy is not None
    store.begin()
    assert store.trim_copy(copy, 0) == copy
    rest = store.trim_copy(copy, 2)
    store.commit()
    assert rest is not None
    assert (rest.first, rest.last, rest.oldest_at_ms, rest.bytes) == (5, 8, 2, 4 * 2 + 2 + 1 + 3 + 1)
    assert store.copy(MBP) == rest
    with pytest.raises(CursorBelowFloor):
        store.read_copy(MBP, Head(FIRST, Seq(3), b""), 9, 9)
    page = store.read_copy(MBP, Head(FIRST, Seq(4), b""), 1, 1)
    assert page is not None
    assert [entry.seq for entry in page.entries] == [5, 6]
    store.begin()
    assert store.trim_copy(rest, 2) is None
    store.commit()
    assert store.copies() == []
    assert store.read_copy(MBP, Head(FIRST, Seq(4), b""), 1, 1) is None


def told_before(store: Store, stream: Stream, kept: list[Page]) -> dict[int, bool]:
    """For each place from which a copy is read: whether the page says the hash that the chain has there."""
    entries = [entry for page in kept for entry in page.entries]
    start, copy = Head(FIRST, Seq(entries[0].seq - 1), kept[0].before), store.copy(MBP)
    assert copy is not None
    found = {}
    for seq in range(copy.first - 1, copy.last):
        page = store.read_copy(MBP, Head(FIRST, Seq(seq), b""), 1, 1)
        assert page is not None
        there = extend(start, entries[: seq - start.seq]).hash
        assert page.before in {b"", there}
        found[seq] = page.before == there
    return found


@pytest.mark.parametrize("missed", [0, 2], ids=["from the beginning", "from the middle"])
def test_a_page_of_a_copy_says_what_it_follows_on(store: Store, stream: Stream, missed: int) -> None:
    """Inside batches too, whatever was let go of at its beginning: its reader proves a fork by it."""
    for _ in range(missed):
        stream.page(b"never came")
    pages = [stream.page(b"a", b"b"), stream.page(b"c"), stream.page(b"d", b"e", b"f"), stream.page(b"g")]
    for page in pages:
        keep(store, MBP, page)
    assert told_before(store, stream, pages) == dict.fromkeys(range(missed, missed + 7), True)
    for left in (5, 4, 1):
        copy = store.copy(MBP)
        assert copy is not None
        store.begin()
        store.trim_copy(copy, 1)
        store.commit()
        assert told_before(store, stream, pages) == dict.fromkeys(range(missed + 7 - left, missed + 7), True)


def test_a_copy_that_began_with_a_page_that_did_not_say_it_says_nothing_of_its_first_batch(
    store: Store, stream: Stream
) -> None:
    stream.page(b"never came")
    pages = [stream.page(b"a", b"b"), stream.page(b"c", b"d")]
    keep(store, MBP, replace(pages[0], before=b""))
    keep(store, MBP, pages[1])
    assert told_before(store, stream, pages) == {1: False, 2: False, 3: True, 4: True}


def test_each_epoch_has_its_copy_and_readers_go_on_in_the_next(store: Store, stream: Stream) -> None:
    start = stream.head
    later = Stream(stream.mesh, MBP, SECOND)
    keep(store, MBP, stream.page(b"a"))
    keep(store, MBP, later.page(b"b"))
    keep(store, MBP, later.page(b"c"))
    assert [copy.epoch for copy in store.copies()] == [FIRST, SECOND]
    assert store.copy(MBP) == store.copies()[1]
    assert walk(store, start, 9) == [("000001", b"a"), ("000002", b"b"), ("000002", b"c")]


@pytest.mark.parametrize(
    ("after", "error"),
    [
        (Head(FIRST, Seq(2), b""), CursorPastEnd),
        (Head(FIRST, Seq(-1), b""), InvalidCursor),
        (Head(Epoch("x"), Seq(0), b""), InvalidCursor),
    ],
)
def test_a_cursor_that_cannot_be(store: Store, stream: Stream, after: Head, error: type[Exception]) -> None:
    keep(store, MBP, stream.page(b"a"))
    with pytest.raises(error):
        store.read_copy(MBP, after, 9, 9)


def test_a_reader_beside_the_writer_sees_the_same(open_journal: Any, stream: Stream) -> None:
    journal: Journal = open_journal()
    start = stream.head
    keep(journal, MBP, stream.page(b"a"))
    reader = JournalReader.open(journal.database.path)
    assert reader.copies() == journal.copies()
    assert reader.read_copy(MBP, start, 9, 9) == journal.read_copy(MBP, start, 9, 9)
    reader.close()
    again: Journal = open_journal()
    assert again.copies() == journal.copies()


def test_the_twin_numbers_copies_as_the_journal_does(open_journal: Any, world: Any, stream: Stream) -> None:
    page = stream.page(b"a")
    stores: list[Store] = [open_journal(), MemoryStore(world.identity)]
    for store in stores:
        keep(store, MBP, page)
        keep(store, LAB, Stream(stream.mesh, LAB).page(b"b"))
    assert stores[0].copies() == stores[1].copies()
    assert isinstance(page.checkpoint, Checkpoint)


def test_what_names_an_event_is_found_from_a_time_on(store: Store, world: Any) -> None:
    event = make_event_id(5, b"e" * 10)
    for node in (LAB, MBP):
        stream = Stream(world.identity.mesh, node)
        stream.header = b'{"eventId":"%s"}' % event.encode()
        keep(store, node, stream.page(b"1", b"2"), 10)
        stream.header = b"{}"
        keep(store, node, stream.page(b"3"), 20)
        stream.header = b'{"corrId":"%s"}' % event.encode()
        keep(store, node, stream.page(b"4"), 30)

    def found(since_ms: int, limit: int = 9) -> list[tuple[str, bytes]]:
        return [(node, entry.body) for node, _, entry in store.copied_about(event, since_ms, limit)]

    assert found(0) == [(node, body) for node in (LAB, MBP) for body in (b"1", b"2", b"4")]
    assert found(10) == found(0)
    assert found(11) == found(30) == [(LAB, b"4"), (MBP, b"4")]
    assert found(31) == []
    assert found(0, limit=1) == [(LAB, b"1"), (MBP, b"1")]
    assert store.copied_about(make_event_id(6, b"e" * 10), 0, 9) == []
