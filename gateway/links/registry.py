"""The links that are up, one a peer, and the sockets of each channel."""

import asyncio
from collections import Counter

from gateway.clock import Clock
from gateway.engine.effects import CursorMoved, StreamBroken
from gateway.links.errors import LinkEnded, StreamRefused
from gateway.links.link import Link
from outbox.errors import BrokenChain
from outbox.ids import NodeId


class Registry:
    """Who is connected, by peer and channel (``state``, ``cursors``, ``pipe``)."""

    def __init__(self, node: NodeId, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._down_since_ms: dict[NodeId, int] = {}
        self._links: dict[NodeId, Link] = {}
        self._sockets: Counter[tuple[NodeId, str]] = Counter()
        self._changed = asyncio.Event()

    # --- sockets

    def opened(self, peer: NodeId, channel: str) -> None:
        """A socket of this channel is up."""
        self._sockets[peer, channel] += 1

    def closed(self, peer: NodeId, channel: str) -> None:
        """It is gone."""
        self._sockets[peer, channel] -= 1
        self._wake()

    def is_up(self, peer: NodeId, channel: str) -> bool:
        """Whether any socket of this channel is up with the peer, whoever dialled it."""
        return self._sockets[peer, channel] > 0

    async def free(self, peer: NodeId, channel: str) -> None:
        """Wait until there is none."""
        while self.is_up(peer, channel):
            await self._changed.wait()

    # --- links

    async def run_link(self, link: Link) -> None:
        """Run a link; of two with one peer the one that the smaller node name dialled stays."""
        before = self._links.get(link.peer)
        if before is not None:
            loser = before if self._dialler(link) <= self._dialler(before) else link
            loser.end(LinkEnded("another link with this peer is up"))
            if loser is link:
                await link.run()
                return
        self._links[link.peer] = link
        self._wake()
        try:
            await link.run()
        finally:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
                self._down_since_ms[link.peer] = self._clock.wall_ms()
                link.gone()
            self._wake()

    def _dialler(self, link: Link) -> NodeId:
        return self._node if link.dialled else link.peer

    def link(self, peer: NodeId) -> Link | None:
        """The link to a peer, if one is up."""
        return self._links.get(peer)

    def linked(self) -> tuple[NodeId, ...]:
        """Peers with a link, by name."""
        return tuple(sorted(self._links))

    def down_since_ms(self, peer: NodeId) -> int | None:
        """When the last link to a peer ended; None when there was none since the start."""
        return self._down_since_ms.get(peer)

    def reset(self) -> None:
        """The engine was built anew."""
        for link in self._links.values():
            link.remind()

    def cursor_moved(self, moved: CursorMoved) -> None:
        """Report what was handled to the peer whose outbox it is."""
        link = self._links.get(moved.node)
        if link is not None:
            link.handled(moved.head)

    def stream_broken(self, broken: StreamBroken) -> None:
        """Close the link that brought a page that was not taken; the peer is blamed for its own faults."""
        link = self._links.get(broken.node)
        if link is not None:
            why = f"{broken.code}: {broken.what}"
            link.end(StreamRefused(why) if broken.code == BrokenChain.code else LinkEnded(why))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
