"""Flow control of one direction of a link: what was sent and not yet reported as seen."""

import asyncio
from collections import deque

from gateway.links.limits import LINK_WINDOW_BYTES


class Window:
    """Bytes under way, by position."""

    def __init__(self) -> None:
        self._under_way: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._open = asyncio.Event()
        self._open.set()

    def sent(self, seq: int, size: int) -> None:
        """A page that ends at ``seq`` went out."""
        self._under_way.append((seq, size))
        self._bytes += size
        if self._bytes >= LINK_WINDOW_BYTES:
            self._open.clear()

    def seen(self, seq: int) -> None:
        """The reader has handled everything up to here."""
        while self._under_way and self._under_way[0][0] <= seq:
            self._bytes -= self._under_way.popleft()[1]
        if self._bytes < LINK_WINDOW_BYTES:
            self._open.set()

    async def opened(self) -> None:
        """Wait until the next page may go out."""
        await self._open.wait()
