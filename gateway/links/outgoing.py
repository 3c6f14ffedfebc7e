"""What one side of a link has to say beside pages: the newest of each kind, so that little ever waits."""

import asyncio
from collections.abc import Iterable, Iterator

from gateway.wire.frames import Frame, Have, Ping, Pong, Stock, Want
from gateway.wire.limits import HAVE_STREAMS_MAX
from outbox.ids import NodeId


class Outgoing:
    """Frames that wait for the writer of a link. At most one of each kind, wants and stocks one a stream."""

    def __init__(self) -> None:
        self.pong: Pong | None = None
        self.ping: Ping | None = None
        self._wants: dict[NodeId, Want] = {}
        self._stocks: dict[tuple[NodeId, bool], Stock] | None = None
        """By stream, and apart what is to be read from what is only known of it."""
        self._grown: dict[NodeId, None] = {}
        self._growth = asyncio.Event()

    def want(self, want: Want) -> None:
        """Ask for a stream; what was asked before and has not left is worth nothing."""
        self._wants.pop(want.node, None)
        self._wants[want.node] = want

    def have(self, stocks: list[Stock]) -> None:
        """Say what there is; what was to be said of a stream before and has not left is worth nothing."""
        waiting = self._stocks or {}
        for stock in stocks:
            waiting.pop((stock.node, stock.complete), None)
            waiting[stock.node, stock.complete] = stock
        self._stocks = waiting

    def grown(self, stream: NodeId) -> None:
        """There is more of a stream that the peer does not read here."""
        self._grown[stream] = None
        self._growth.set()

    async def growth(self) -> list[NodeId]:
        """Streams that have grown since the last call; waits for one."""
        await self._growth.wait()
        self._growth.clear()
        grown, self._grown = list(self._grown), {}
        return grown

    def take(self) -> list[Frame]:
        """Everything that waits, in the order in which it should leave."""
        frames: list[Frame] = [frame for frame in (self.pong, self.ping) if frame is not None]
        self.pong = self.ping = None
        if self._stocks is not None:
            frames += _haves(self._stocks.values())
            self._stocks = None
        if self._wants:
            frames += self._wants.values()
            self._wants = {}
        return frames


def _haves(stocks: Iterable[Stock]) -> Iterator[Have]:
    """As many frames as the list takes: one at least."""
    rest = list(stocks)
    while True:
        part, rest = rest[:HAVE_STREAMS_MAX], rest[HAVE_STREAMS_MAX:]
        yield Have(tuple(part), more=bool(rest))
        if not rest:
            return
