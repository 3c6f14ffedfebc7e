"""The links that are up, one a peer, what is read over which, and the sockets of each channel."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import structlog

from gateway.clock import Clock
from gateway.engine.effects import CursorMoved, StreamBroken
from gateway.engine.inputs import FloorRead, PageRead, RelayCaught
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.links.errors import LinkEnded, StreamRefused
from gateway.links.fetchplan import Carrier
from gateway.links.limits import DISTRUST_MS, LOOK_EVERY_S, REFUSED_BY_DISK_MS
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.sources import Command, Sources
from gateway.wire.frames import Stock
from outbox.chain import Checkpoint
from outbox.errors import BodyWithheld, BrokenChain, ForeignEpoch, MeshError, StreamForked
from outbox.ids import NodeId
from stateroom.view import View

log = structlog.get_logger(__name__)

_FAULTS = frozenset({BrokenChain.code, BodyWithheld.code, ForeignEpoch.code})
"""What the bringer of a page is to blame for; all else is our own trouble, and passes."""


class Down(NamedTuple):
    """How a link ended."""

    since_ms: int
    why: str
    """What was said about it; empty when the line just broke."""


def _words(error: MeshError | None) -> str:
    return ": ".join(filter(None, (str(error), error.hint))) if error is not None else ""


class Registry:
    """Who is connected, by peer and channel (``state``, ``cursors``, ``pipe``); implements ``Hub``."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._node = local.identity.node
        self._clock: Clock = local.clock
        self._down: dict[NodeId, Down] = {}
        self._links: dict[NodeId, Link] = {}
        self._numbered: dict[int, Link] = {}
        """Links that have been greeted."""
        self._last_number = 0
        self._sources = Sources(self._node, local.reader.cursors())
        self._sockets: Counter[tuple[NodeId, str]] = Counter()
        self._changed = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None
        """Is told when there are other links, or they offer something else."""

    async def run(self) -> None:
        """Look after sources until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self._do(self._sources.look(self._clock.mono_ms()))

    def see(self, view: View) -> None:
        """The state room changed: streams of members can be verified, whoever brings them."""
        dialable = frozenset(name for name, node in view.nodes.items() if node.endpoints)
        out = {node: word for node in view.revocations if (word := view.revoked(node)) is not None}
        self._sources.members(frozenset(view.nodes) | frozenset(out), dialable)
        self._sources.ended({node: word.last.head if word.last else None for node, word in out.items()})
        for node in view.peers(self._node):
            if node.floor is not None:
                at = node.floor
                floor = Checkpoint(self._local.identity.mesh, node.node, at.epoch, at.seq, at.hash, b"")
                self._sources.forgotten(floor)
        self._decide()

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
        self._last_number += 1
        link.number = self._last_number
        before = self._links.get(link.peer)
        if before is not None:
            loser = before if self._dialler(link) <= self._dialler(before) else link
            loser.end(LinkEnded("another link with this peer is up"))
            if loser is link:
                await self._run(link)
                return
        self._links[link.peer] = link
        self._wake()
        try:
            await self._run(link)
        finally:
            if self._links.get(link.peer) is link:
                del self._links[link.peer]
                self._down[link.peer] = Down(self._clock.wall_ms(), _words(link.over))
                link.gone()
            self._wake()

    async def _run(self, link: Link) -> None:
        try:
            await link.run(self)
        finally:
            self._numbered.pop(link.number, None)
            self._sources.closed(link.number)
            self._decide()

    def _dialler(self, link: Link) -> NodeId:
        return self._node if link.dialled else link.peer

    def carriers(self) -> list[Carrier]:
        """Links over which blobs can come; peers of version 1 know nothing of blobs."""
        return [
            Carrier(number, link.peer, self._sources.copies(number))
            for number, link in self._numbered.items()
            if link.version > 1
        ]

    def numbered(self, number: int) -> Link | None:
        """A link that has been greeted, by its number."""
        return self._numbered.get(number)

    def end(self, peer: NodeId, error: MeshError) -> None:
        """Close every link with a peer for this reason, also one that is not greeted yet."""
        for link in (self._links.get(peer), *self._numbered.values()):
            if link is not None and link.peer == peer:
                link.end(error)

    def link(self, peer: NodeId) -> Link | None:
        """The link to a peer, if one is up."""
        return self._links.get(peer)

    def linked(self) -> tuple[NodeId, ...]:
        """Peers with a link, by name."""
        return tuple(sorted(self._links))

    def down(self, peer: NodeId) -> Down | None:
        """How the last link to a peer ended; None when there was none since the start."""
        return self._down.get(peer)

    # --- told by links

    def greeted(self, link: Link) -> None:
        """Its peer is who it should be."""
        self._numbered[link.number] = link
        self._sources.opened(link.number, link.peer)
        self._decide()

    def offered(self, link: Link, stocks: tuple[Stock, ...]) -> None:
        """Its peer has this. Raises TooManyStreams."""
        self._sources.offers(link.number, stocks, self._clock.mono_ms())
        self._decide()

    def readable(self, link: Link) -> list[Stock]:
        """What of all that its peer has offered can be read here."""
        return self._sources.readable(link.number)

    def caught(self, link: Link, stream: NodeId, error: MeshError) -> None:
        """Its peer brought what the stream's writer has not written."""
        self._local.runtime.tell_now(RelayCaught(link.peer, stream, error.code, str(error)))
        self._distrust(link.peer)

    def forgotten(self, floor: Checkpoint) -> bool:
        """Its peer has forgotten this much; whether reading goes on there at once, as for who begins."""
        below = self._sources.forgotten(floor)
        self._decide()
        return not below

    # --- told by the tick

    def epoch_began(self) -> None:
        """The own outbox has a new epoch: every link says anew what there is."""
        for link in self._numbered.values():
            link.end(LinkEnded("this node begins a new epoch"))

    def reset(self) -> None:
        """The engine was built anew."""
        for link in self._links.values():
            link.remind()

    def grown(self, stream: NodeId) -> None:
        """There is more of a stream that can be read here."""
        for link in self._numbered.values():
            link.grown(stream)

    def page_done(self, read: PageRead) -> None:
        """A page was handled, or will not be."""
        link = self._numbered.get(read.link)
        if link is not None:
            link.page_done(read.size)

    def cursor_moved(self, moved: CursorMoved) -> None:
        """Another outbox was handled up to here: its writer is told, if it is linked."""
        self._sources.moved(moved.node, moved.head, self._clock.mono_ms())
        link = self._links.get(moved.node)
        if link is not None:
            link.handled(moved.head)
        self._do(self._sources.decide(self._clock.mono_ms()))

    def stream_broken(self, broken: StreamBroken) -> None:
        """A page was not taken. Who is to blame is not read from; what our disk refused comes again."""
        link = self._numbered.get(broken.link)
        if link is None:
            return
        why = f"{broken.code}: {broken.what}"
        if broken.code == StreamForked.code:
            log.warning("stream.forked", node=broken.node, why=broken.what)
            self._sources.shun(link.number, broken.node, self._clock.mono_ms() + DISTRUST_MS)
            self._decide()
        elif broken.code not in _FAULTS:
            until_ms = self._clock.mono_ms() + REFUSED_BY_DISK_MS
            self._sources.refused_here(link.number, broken.node, until_ms)
            self._decide()
        elif broken.relay is None:
            link.end(StreamRefused(why))
        else:
            self._distrust(broken.relay)

    # --- inside

    def _distrust(self, relay: NodeId) -> None:
        log.warning("relay.distrusted", relay=relay)
        self._sources.distrust(relay, self._clock.mono_ms())
        self._decide()

    def _decide(self) -> None:
        self._do(self._sources.decide(self._clock.mono_ms()))
        self.on_change()

    def _do(self, commands: list[Command]) -> None:
        for command in commands:
            link = self._numbered[command.link]
            if command.read:
                afresh = self._sources.goes_on_later(command.link, command.stream)
                link.ask(command.stream, afresh=afresh)
            else:
                link.leave(command.stream)
        for notice in self._sources.notices():
            stalled = StreamStalled(notice.stream, notice.peer)
            self._local.runtime.tell_now(stalled if notice.stalled else StreamFlows(notice.stream))

        for floor in self._sources.given_up():
            log.warning("stream.history_missed", node=floor.node, floor=floor.seq)
            self._local.runtime.tell_now(FloorRead(floor.node, floor))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
