"""A link as a collector has it: it reads whole outboxes, and has nothing to offer.

It keeps the rules of a link (``docs/PROTOCOL.md``): greets, grants credit, answers pings. It shows no cursor
in the state room, so nobody keeps anything for it: who collects seldom may find that a place was forgotten.
One coroutine reads the socket (``run``), another takes pages (``page``).
"""

import asyncio
from collections import defaultdict, deque

from gateway.clock import Clock
from gateway.limits import EARLIER_WITHIN_S, OFFERED_WITHIN_S, PING_EVERY_S
from gateway.links.asking import Asking
from gateway.links.credit import Grants
from gateway.links.errors import LinkEnded, StreamRefused, TooManyStreams, VersionRefused
from gateway.links.greeting import agreed_version
from gateway.links.limits import LINK_STARTS_WITHIN_S, OFFERS_MAX
from gateway.links.socket import Socket
from gateway.wire.codec import decode, encode
from gateway.wire.frames import (
    VERSION,
    VERSIONS,
    Bye,
    Credit,
    Entries,
    Filter,
    Floor,
    Frame,
    Have,
    Hello,
    Ping,
    Pong,
    Stock,
)
from gateway.wire.pages import page_bytes
from outbox.chain import Checkpoint, Entry, Excerpt, Head, Page
from outbox.errors import BodyWithheld, PeerError
from outbox.groups import first_of
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from outbox.records import Identity

_CLOSE_NORMAL = 1000


class Visitor:
    """One link to ``peer``, as the node ``who`` whose gateway does not run."""

    def __init__(self, who: Identity, peer: NodeId, socket: Socket, clock: Clock) -> None:
        self.peer = peer
        self.stocks: dict[NodeId, Stock] = {}
        """What can be read here."""
        self.floors: dict[NodeId, Checkpoint] = {}
        """From where those outboxes go on of which the beginning is not here."""
        self.fault: PeerError | None = None
        """Why the link is over."""
        self._who, self._socket, self._clock = who, socket, clock
        self._asking, self._grants = Asking(), Grants()
        self._pages: dict[NodeId, deque[Excerpt]] = defaultdict(deque)
        self._at: dict[NodeId, Head] = {}
        """Up to where each outbox was taken."""
        self._wanted: set[NodeId] = set()
        """Outboxes that the peer was asked for, and pushes."""
        self.looked: dict[NodeId, Epoch] = {}
        """Outboxes whose earlier epochs were asked for here, and the epoch that was current then."""
        self._changed = asyncio.Event()
        self._heard_ms = clock.mono_ms()
        self._version = VERSION

    async def greet(self) -> None:
        """Say who we are and wait for the list of what can be read.

        Raises SocketClosed, LinkEnded, VersionRefused, BadFrame.
        """
        who = self._who
        await self._send(Hello(VERSION, VERSIONS, who.node, who.mesh, self._clock.wall_ms()))
        try:
            async with asyncio.timeout(LINK_STARTS_WITHIN_S):
                hello = decode(await self._socket.receive())
                self._version = agreed_version(hello, self.peer, who.mesh)
                if self._version == 1:
                    raise VersionRefused(
                        f"{self.peer} speaks version 1 of the frames only",
                        hint="a collector grants credit, which came later: update that gateway",
                    )
                await self._grant()
                await self._send(Have(()))
                await self._list()
        except TimeoutError:
            raise LinkEnded(f"{self.peer} opened a link and says nothing") from None

    async def _list(self) -> None:
        while True:
            frame = await self._receive()
            await self._hear(frame)
            if isinstance(frame, Have) and not frame.more:
                return

    async def run(self) -> None:
        """Read the socket until the link is over; ``page`` raises why it was."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read())
                tasks.create_task(self._watch())
        except* PeerError as group:
            self.fault = first_of(group)
            self._changed.set()
        finally:
            await self._socket.close(_CLOSE_NORMAL, "")

    async def page(self, stream: NodeId, after: Head) -> Page | None:
        """What follows a place in an outbox; None when there is no more here.

        Raises PeerError branches: the link is over, a body did not travel, or what was offered does not come.
        """
        try:
            async with asyncio.timeout(OFFERED_WITHIN_S):
                return await self._page(stream, after)
        except TimeoutError:
            raise StreamRefused(
                f"{self.peer} offers more of the outbox of {stream} than it brings",
                hint="it is read elsewhere",
            ) from None

    async def _page(self, stream: NodeId, after: Head) -> Page | None:
        self._stand(stream, after)
        while True:
            self._changed.clear()
            if pages := self._pages[stream]:
                return await self._take(stream, pages.popleft())
            if self.fault is not None:
                raise self.fault
            if self._is_read(stream):
                return None
            if stream not in self._wanted:
                self._skip_to_first(stream)
                await self._ask(stream)
            else:
                await self._changed.wait()

    async def earlier_page(self, stream: NodeId, after: Head) -> Page | None:
        """What follows a place in an epoch that ended; None when the peer has nothing to say to that.

        A copy of which the beginning was let go of is silent, and so is one that ends there: no frame says
        that there is no more. Raises as ``page``.
        """
        self._stand(stream, after)
        if stream not in self._wanted:
            await self._ask(stream)
        try:
            async with asyncio.timeout(EARLIER_WITHIN_S):
                while not self._pages[stream] and self.fault is None and stream in self._wanted:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return None
        if self._pages[stream]:
            return await self._take(stream, self._pages[stream].popleft())
        if self.fault is not None:
            raise self.fault
        return None

    def _stand(self, stream: NodeId, after: Head) -> None:
        if self._at.get(stream) != after:
            self._wanted.discard(stream)
            self._drop(stream)
            self._at[stream] = after

    # --- what the peer says

    async def _read(self) -> None:
        while True:
            await self._hear(await self._receive())
            self._changed.set()

    async def _hear(self, frame: Frame) -> None:
        self._heard_ms = self._clock.mono_ms()
        match frame:
            case Have():
                self._offered(frame)
            case Entries():
                self._grants.arrived(page_bytes(frame.page))
                if self._asking.expects(frame.node, frame.ask):
                    self._pages[frame.node].append(frame.page)
                else:
                    await self._handled(frame.page)
            case Floor() if self._asking.expects(frame.node, frame.ask):
                self.floors[frame.node] = frame.checkpoint(self._who.mesh)
            case Ping():
                await self._send(Pong(frame.at_ms, self._clock.wall_ms()))
            case Bye():
                raise LinkEnded(f"{self.peer} closed the link: {frame.code}", hint=frame.hint)
            case _:
                """What it wants of us, and what it tells a gateway."""

    def _offered(self, frame: Have) -> None:
        """Of what is told anew nothing is on its way: it is asked for again. Raises TooManyStreams."""
        self.stocks |= {stock.node: stock for stock in frame.streams if stock.complete}
        self._wanted -= {stock.node for stock in frame.streams}
        if len(self.stocks) > OFFERS_MAX:
            raise TooManyStreams(f"more than {OFFERS_MAX} streams are offered")

    async def _watch(self) -> None:
        """A peer that is silent is gone: a gateway pings."""
        while True:
            await asyncio.sleep(PING_EVERY_S)
            if self._clock.mono_ms() - self._heard_ms > 2 * PING_EVERY_S * 1000:
                raise LinkEnded(f"{self.peer} has been silent too long")

    # --- one outbox

    def _skip_to_first(self, stream: NodeId) -> None:
        """A copy that begins later is read from its first checkpoint on."""
        stock, at = self.stocks[stream], self._at[stream]
        begins = at.seq if stock.epoch == at.epoch else 0
        if stream != self.peer and stock.first > begins + 1:
            self._at[stream] = Head(stock.epoch, Seq(stock.first - 1), b"")

    async def _ask(self, stream: NodeId) -> None:
        """Want what follows."""
        self._wanted.add(stream)
        self._drop(stream)
        await self._send(self._asking.read(stream, self._at[stream], Filter.ALL))

    async def _take(self, stream: NodeId, page: Excerpt) -> Page | None:
        await self._handled(page)
        missing = next((entry.seq for entry in page.entries if not isinstance(entry, Entry)), None)
        if missing is not None:
            raise BodyWithheld(f"{self.peer} has sent entry {missing} of {stream} without its body")
        entries = tuple(entry for entry in page.entries if isinstance(entry, Entry))
        begun = self._at[stream].hash == b""
        self._at[stream] = page.checkpoint.head
        if begun:
            self.floors[stream] = page.checkpoint
            return await self._page(stream, page.checkpoint.head)
        return Page(page.epoch, entries, page.checkpoint, page.before)

    def _is_read(self, stream: NodeId) -> bool:
        stock, at = self.stocks.get(stream), self._at[stream]
        return stock is None or _order(Head(stock.epoch, Seq(stock.last), b"")) <= _order(at)

    def _drop(self, stream: NodeId) -> None:
        """Pages that came for another place."""
        for page in self._pages.pop(stream, ()):
            self._grants.handled(page_bytes(page))

    # --- what we say

    async def _handled(self, page: Excerpt) -> None:
        self._grants.handled(page_bytes(page))
        await self._grant()

    async def _grant(self) -> None:
        if due := self._grants.due():
            await self._send(Credit(due))

    async def _send(self, frame: Frame) -> None:
        await self._socket.send(encode(frame, self._version))

    async def _receive(self) -> Frame:
        return decode(await self._socket.receive(), self._version)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq
