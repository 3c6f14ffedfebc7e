"""Recent pages of one stream, in memory, for readers that are up to date."""

import asyncio

from gateway.limits import FEED_BYTES_MAX
from outbox.chain import Head, Page
from outbox.ids import Seq, epoch_ordinal
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX


class Feed:
    """A bounded tail of committed pages; whoever waits is woken by each new one."""

    def __init__(self, head: Head, bytes_max: int = FEED_BYTES_MAX, *, is_open: bool = True) -> None:
        self.head = head
        """The last place that others may see."""
        self.is_open = is_open
        """Whether others may read it at all now."""
        self.written = head
        """The last place that is committed: what this node itself may see."""
        self._bytes_max = bytes_max
        self._pages: dict[Seq, tuple[Page, int]] = {}
        """By their first position, oldest first; each with its size."""
        self._bytes = 0
        self._changed = asyncio.Event()

    def restart(self, head: Head, *, is_open: bool) -> None:
        """The stream goes on from here: of a new epoch, or of what was not shown before."""
        self.head, self.is_open, self.written = head, is_open, head
        self._pages.clear()
        self._bytes = 0
        self._wake()

    def push(self, page: Page) -> None:
        """Add a page that was just committed."""
        size = sum(len(entry.header) + len(entry.body) for entry in page.entries)
        self._pages[page.entries[0].seq] = (page, size)
        self._bytes += size
        while self._bytes > self._bytes_max:
            self._bytes -= self._pages.pop(next(iter(self._pages)))[1]
        self.head = self.written = page.checkpoint.head
        self._wake()

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
        return Page(page.epoch, tuple(entries), page.checkpoint, found[0].before)

    def hold(self, page: Page) -> None:
        """A page was committed that others may not see yet."""
        self.written = page.checkpoint.head
        self._wake()

    async def beyond(self, place: Head) -> None:
        """Wait until something is written after this place, in its epoch or in a later one."""
        while _order(self.written) <= _order(place):
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq
