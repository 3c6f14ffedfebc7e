"""Recent pages of the own outbox, in memory, for links that are up to date."""

import asyncio
from collections import deque

from gateway.limits import FEED_BYTES_MAX
from outbox.chain import Head, Page


class Feed:
    """A bounded tail of committed pages; whoever waits is woken by each new one."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self._pages: deque[Page] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def push(self, page: Page) -> None:
        """Add a page that was just committed."""
        self._pages.append(page)
        self._bytes += _bytes(page)
        while self._bytes > FEED_BYTES_MAX and len(self._pages) > 1:
            self._bytes -= _bytes(self._pages.popleft())
        self.head = page.checkpoint.head
        self._changed.set()
        self._changed = asyncio.Event()

    def after(self, seq: int) -> list[Page] | None:
        """The pages after a position; None when they have left memory (or it lies inside a page)."""
        if seq == self.head.seq:
            return []
        pages: list[Page] = []
        for page in reversed(self._pages):
            if page.checkpoint.seq <= seq:
                break
            pages.append(page)
        pages.reverse()
        return pages if pages and pages[0].entries[0].seq == seq + 1 else None

    async def beyond(self, seq: int) -> None:
        """Wait until something follows this position."""
        while self.head.seq <= seq:
            await self._changed.wait()


def _bytes(page: Page) -> int:
    return sum(len(entry.header) + len(entry.body) for entry in page.entries)
