"""The tail of the own outbox in memory: whole pages, bounded, and merged for whoever is behind."""

import asyncio

import pytest

from gateway import feed as feed_module
from gateway.feed import Feed
from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.ids import Epoch, Seq

EPOCH = Epoch("000001-0123456789ab")


def page(first: int, last: int, size: int = 1) -> Page:
    entries = tuple(Entry(Seq(seq), b"", b"x" * size) for seq in range(first, last + 1))
    return Page(EPOCH, entries, Checkpoint("mesh", "a", EPOCH, Seq(last), b"", b""))


def starting_at(seq: int) -> Feed:
    return Feed(Head(EPOCH, Seq(seq), b""))


def test_a_reader_gets_the_pages_after_its_position() -> None:
    feed = starting_at(3)
    pages = [page(4, 4), page(5, 7), page(8, 8)]
    for each in pages:
        feed.push(each)
    assert feed.head.seq == 8
    assert feed.after(3) == page(4, 8)
    assert feed.after(4) == page(5, 8)
    assert feed.after(7) == page(8, 8)
    assert feed.after(8) is None


def test_what_is_not_in_memory_whole_must_be_read_from_disk() -> None:
    feed = starting_at(3)
    assert feed.after(3) is None
    feed.push(page(4, 6))
    assert feed.after(2) is None
    assert feed.after(5) is None
    assert feed.after(7) is None


def test_the_memory_is_bounded() -> None:
    feed = Feed(Head(EPOCH, Seq(0), b""), 100)
    feed.push(page(1, 1, 60))
    feed.push(page(2, 2, 40))
    assert feed.after(0) is not None
    feed.push(page(3, 3, 1))
    assert feed.after(0) is None
    assert [entry.seq for entry in feed.after(1).entries] == [2, 3]
    feed.push(page(4, 4, 500))
    assert feed.after(3) is None
    assert feed.head.seq == 4


def test_many_small_pages_leave_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "PAGE_ENTRIES_MAX", 10)
    monkeypatch.setattr(feed_module, "PAGE_BYTES_MAX", 1_000)
    feed = starting_at(0)
    for seq in range(1, 26):
        feed.push(page(seq, seq))
    assert [feed.after(seq).checkpoint.seq for seq in (0, 10, 20)] == [10, 20, 25]
    feed.push(page(26, 26, 999))
    assert feed.after(24) == Page(
        EPOCH, (*page(25, 25).entries, *page(26, 26, 999).entries), page(26, 26).checkpoint
    )
    feed.push(page(27, 27, 1_001))
    assert feed.after(25) == page(26, 26, 999)
    assert feed.after(26) == page(27, 27, 1_001)


def place(seq: int, epoch: Epoch = EPOCH) -> Head:
    return Head(epoch, Seq(seq), b"")


async def test_what_is_held_back_is_written_and_not_seen_by_others() -> None:
    feed = starting_at(3)
    feed.hold(page(4, 4))
    await feed.beyond(place(3))
    assert (feed.head.seq, feed.written.seq) == (3, 4)
    assert feed.after(3) is None
    feed.restart(place(4), is_open=True)
    assert (feed.head, feed.written, feed.is_open) == (place(4), place(4), True)


async def test_a_new_epoch_follows_whatever_was_written_before() -> None:
    feed = starting_at(9)
    later = Epoch("000002-0123456789ab")
    feed.restart(place(0, later), is_open=False)
    await feed.beyond(place(9))
    assert feed.after(8) is None


async def test_a_reader_at_the_end_is_woken_by_the_next_page() -> None:
    feed = starting_at(0)
    await feed.beyond(place(-1))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        first, second = (group.create_task(feed.beyond(place(seq))) for seq in (0, 1))
        feed.push(page(1, 1))
        await first
        assert not second.done()
        feed.push(page(2, 2))
    assert second.done()
