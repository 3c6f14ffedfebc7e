"""Recent pages of one stream, in memory, for readers that are up to date."""

import asyncio

from gateway.limits import FEED_BYTES_MAX
from outbox.chain import Head, Page
from outbox.ids import Seq
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX


class Feed:
    """A bounded tail of committed pages; whoever waits is woken by each new one."""

    def __init__(self, head: Head, bytes_max: int = FEED_BYTES_MAX) -> None:
        self.head = head
        self._bytes_max = bytes_max
        self._pages: dict[Seq, tuple[Page, int]] = {}
        """By their first position, oldest first; each with its size."""
        self._bytes = 0
        self._changed = asyncio.Event()

    def push(self, page: Page) -> None:
        """Add a page that was just committed."""
        size = sum(len(entry.header) + len(entry.body) for entry in page.entries)
        self._pages[page.entries[0].seq] = (page, size)
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._bytes -= self._pages.pop(next(iter(self._pages)))[1]
        self.head = page.checkpoint.head
        self._changed.set()
        self._changed = asyncio.Event()

    def after(self, seq: int) -> Page | None:
        """What follows a position, as one page; None when it is not in memory (or lies inside a page)."""
        found = self._pages.get(Seq(seq + 1))
        if found is None:
            return None
        page, size = found
        entries = list(page.entries)
        while (following := self._pages.get(Seq(page.checkpoint.seq + 1))) is not None:
            size += following[1]
            if size > PAGE_BYTES_MAX or len(entries) + len(following[0].entries) > PAGE_ENTRIES_MAX:
                break
            page = following[0]
            entries += page.entries
        return Page(page.epoch, tuple(entries), page.checkpoint)

    async def beyond(self, seq: int) -> None:
        """Wait until something follows this position."""
        while self.head.seq <= seq:
            await self._changed.wait()
