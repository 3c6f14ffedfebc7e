"""One link: two gateways read streams from each other over one socket.

Frames are in ``gateway.wire``. Both sides speak at once: each says who it is, what it has and what it wants,
then pages flow as they commit. One task reads the socket and one writes to it: neither waits for the other.
"""

import asyncio

import structlog

from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.inputs import FloorRead, LinkDown, LinkUp, PageRead, StreamHead, StreamKnown
from gateway.links.asking import Asking, is_over
from gateway.links.bloblane import BlobLane
from gateway.links.credit import Allowance, Grants, Window
from gateway.links.entitlement import check_filter, check_peer, check_version
from gateway.links.errors import LinkEnded, SocketClosed
from gateway.links.greeting import agreed_version
from gateway.links.hub import Hub
from gateway.links.limits import HAVE_EVERY_S, LINK_STARTS_WITHIN_S
from gateway.links.local import Local
from gateway.links.outgoing import Outgoing
from gateway.links.progress import Progress
from gateway.links.pulse import Pulse
from gateway.links.serving import Serving
from gateway.links.shelf import Shelf
from gateway.links.socket import Socket
from gateway.links.tempo import Tempo
from gateway.links.vouching import check_page, known_of_us
from gateway.wire.codec import decode, encode
from gateway.wire.frames import (
    VERSION,
    VERSIONS,
    BlobNone,
    BlobPiece,
    BlobWant,
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
    Seen,
    Want,
)
from gateway.wire.pages import page_bytes
from outbox.chain import Head, Verify, check_signature
from outbox.errors import BadCheckpoint, BadFrame, BrokenChain, CursorBelowFloor, CursorError, MeshError
from outbox.groups import first_of
from outbox.ids import NodeId, Seq
from outbox.readership import excerpt, whole

log = structlog.get_logger(__name__)

CLOSE_NORMAL = 1000
CLOSE_POLICY = 1008


class Link:
    """A link to one peer, from the first frame to the last."""

    def __init__(self, local: Local, peer: NodeId, verify: Verify, socket: Socket, *, dialled: bool) -> None:
        self.peer = peer
        self.dialled = dialled
        self.number = 0
        """Given by the registry; higher is later."""
        self.since_ms = local.clock.wall_ms()
        self.version = VERSION
        self.over: MeshError | None = None
        """Why it has ended, where somebody broke a rule or said why."""
        self._local = local
        self._verify = verify
        self._socket = socket
        self._shelf = Shelf(
            local.identity.node, local.runtime.feed, local.runtime.copies, local.reader, local.view
        )
        self._serving = Serving()
        self._allowance = Allowance()
        self._grants = Grants()
        self._outgoing = Outgoing()
        self._tempo = Tempo()
        self._progress = Progress(peer)
        self._stirred = asyncio.Event()
        tell = local.runtime.tell_now
        self._pulse = Pulse(peer, local.clock, self._outgoing, stirred=self._stirred, tell=tell)
        self.offset = self._pulse.offset
        self.blobs = BlobLane(local, peer, self._serving, self._stirred)
        self._asking = Asking()
        self._up: LinkUp | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, hub: "Hub[Link]") -> None:
        """Serve and read until the socket closes or somebody breaks a rule; a peer's fault raises nothing."""
        try:
            await self._greet()
            hub.greeted(self)
            async with asyncio.TaskGroup() as tasks:
                parts = (self._read(hub), self._write(), self._announce(), self._until_ended())
                for part in (*parts, self._pulse.beat(), self.blobs.serve()):
                    tasks.create_task(part)
        except* SocketClosed as gone:
            log.info("link.closed", peer=self.peer, why=str(first_of(gone)))
        except* MeshError as broken:
            self.over = first_of(broken)
            await self._say_bye(self.over)
        finally:
            self.blobs.close()
            if self._ended.done() and not self._ended.cancelled():
                self._ended.exception()  # an end that came before anybody waited for it has been heard too
            await self._socket.close(CLOSE_NORMAL, "")

    # --- told by the registry

    def ask(self, stream: NodeId, *, afresh: bool = False) -> None:
        """Read a stream over this link, from where it stands; ``afresh`` from where it begins there."""
        everything = self.version == 1 or self._local.mirror.holds(stream)
        which = Filter.ALL if everything else Filter.MINE
        cursor = self._local.reader.cursor(stream)
        if cursor and (afresh or is_over(self._local.runtime.view, stream, cursor.epoch, self.version)):
            cursor = None  # nothing more of that epoch is to be had, or read: a later one is of use
        self._want(self._asking.read(stream, cursor, which))

    def leave(self, stream: NodeId) -> None:
        """Read it here no longer."""
        want = self._asking.leave(stream)
        if self.version == 1:
            self.end(LinkEnded(f"{self.peer} speaks version 1, which cannot be told to pause"))
            return
        self._want(want)

    def grown(self, stream: NodeId) -> None:
        """There is more of a stream that can be read from this node."""
        if self._serving.grown(stream):
            self._stirred.set()
        elif self.version > 1:
            self._outgoing.grown(stream)

    def handled(self, head: Head) -> None:
        """The peer's own outbox was committed here up to this head."""
        crashpoint(CrashPoint.LINK_AFTER_COMMIT)
        if self._progress.handled(head, self._local.clock.mono_ms()):
            self._stirred.set()

    def page_done(self, size: int) -> None:
        """A page that came over this link needs no memory any more."""
        if self._grants.handled(size):
            self._stirred.set()

    def remind(self) -> None:
        """The engine was built anew: say again what the peer has advertised, and what its clock shows."""
        for known in (self._up, self.offset.told):
            if known is not None:
                self._local.runtime.tell_now(known)

    def gone(self) -> None:
        """There is no link with this peer any more."""
        self._local.runtime.tell_now(LinkDown(self.peer))

    def end(self, error: MeshError) -> None:
        """Close the link for this reason."""
        if not self._ended.done():
            self._ended.set_exception(error)

    async def _greet(self) -> None:
        who, clock = self._local.identity, self._local.clock
        words = self._local.words
        await self._send(Hello(VERSION, VERSIONS, who.node, who.mesh, clock.wall_ms(), words.tell()))
        try:
            async with asyncio.timeout(LINK_STARTS_WITHIN_S):
                hello = decode(await self._socket.receive())
        except TimeoutError:
            raise LinkEnded(f"{self.peer} opened a link and says nothing") from None
        self.version = agreed_version(hello, self.peer, who.mesh)
        words.hear(hello.revocations if isinstance(hello, Hello) else ())
        check_peer(self.peer, self._local.view())
        check_version(self.version, self.peer, self._local.view())
        if self.version == 1:
            self._allowance, self._progress.every_ms = Window(), 0
        vouched = self._shelf.vouch(self.peer) if self.version > 1 else []
        self._outgoing.have(self._shelf.stocks(copies=self.version > 1) + vouched)

    # --- what the peer says

    async def _read(self, hub: "Hub[Link]") -> None:
        while True:
            frame = decode(await self._socket.receive(), self.version)
            self._pulse.heard()
            if (pause_s := self._tempo.pause_s(frame, self._local.clock.mono_ms())) is not None:
                await asyncio.sleep(pause_s)
            if isinstance(frame, Entries | Floor | Have):
                await self._local.runtime.room_of(self.peer)
            self._hear(hub, frame)

    def _hear(self, hub: "Hub[Link]", frame: Frame) -> None:
        match frame:
            case Entries():
                self._take(hub, frame)
            case Floor():
                self._on_floor(hub, frame)
            case Seen() | Credit():
                if self._allowance.hear(frame):
                    self._stirred.set()
            case Want():
                self._on_want(frame)
            case BlobWant() | BlobPiece() | BlobNone():
                self.blobs.hear(frame)
            case Ping() | Pong():
                self._pulse.hear(frame)
            case Bye():
                raise LinkEnded(f"{self.peer} closed the link: {frame.code}", hint=frame.hint)
            case Have():
                self._on_have(hub, frame)
            case Hello():
                raise BadFrame("hello comes once")

    def _take(self, hub: "Hub[Link]", frame: Entries) -> None:
        size = page_bytes(frame.page)
        if self.version > 1:
            self._grants.arrived(size)
        if not self._asking.expects(frame.node, frame.ask) or self._ended.done():
            self.page_done(size)  # of a stream that is read elsewhere by now
            return
        try:
            check_page(self._local, self.peer, self._verify, frame)
            self._asking.goes_on(frame.node, frame.page.checkpoint)
        except (BadCheckpoint, BrokenChain) as error:
            if frame.node == self.peer:
                raise
            self.page_done(size)
            hub.caught(self, frame.node, error)
            return
        crashpoint(CrashPoint.LINK_BEFORE_SUBMIT)
        relay = self.peer if frame.node != self.peer else None
        self._local.runtime.tell_now(PageRead(frame.node, frame.page, relay, self.number, size))

    def _on_have(self, hub: "Hub[Link]", frame: Have) -> None:
        if self.version == 1 and frame.streams[0].node != self.peer:
            raise BadFrame(f"{self.peer} has only its own outbox to offer")
        hub.offered(self, frame.streams)
        known = known_of_us(self._local, frame)
        if known is not None or not (self._up or frame.more):
            self._local.runtime.tell_now(StreamKnown(self.peer, known))
        if self._up is not None:
            return
        if not frame.more:
            heads = (StreamHead(stock.node, stock.epoch, Seq(stock.last)) for stock in hub.readable(self))
            self._up = LinkUp(self.peer, tuple(heads))
            self._local.runtime.tell_now(self._up)

    def _on_want(self, frame: Want) -> None:
        if self._shelf.stock(frame.node) is None:
            raise BadFrame(f"{frame.node} was not offered")
        self._shelf.check(frame.node, frame.epoch, Seq(frame.after))
        if self.version > 1:
            check_filter(frame, self.peer, self._local.view())
        self._serving.want(frame)
        if frame.filter is Filter.NONE:
            self._outgoing.grown(frame.node)  # the peer was not told how it grew while it was read here
        self._stirred.set()

    def _on_floor(self, hub: "Hub[Link]", frame: Floor) -> None:
        if frame.node != self.peer:
            raise BadFrame(f"only {frame.node} itself may say that its outbox was forgotten")
        if self._asking.expects(frame.node, frame.ask):
            floor = frame.checkpoint(mesh := self._local.identity.mesh)
            check_signature(floor, mesh, self.peer, self._verify)
            if hub.forgotten(floor):
                self._local.runtime.tell_now(FloorRead(self.peer, floor, self.number))

    # --- what we say

    async def _write(self) -> None:
        while True:
            self._stirred.clear()
            if self.version > 1 and (due := self._grants.due()):
                await self._send(Credit(due))
            for frame in (*self._outgoing.take(), *self.blobs.take_wants()):
                await self._send(frame)
            if (seen := self._progress.take(self._local.clock.mono_ms())) is not None:
                await self._send(seen)
                crashpoint(CrashPoint.LINK_AFTER_SEEN)
            served = await self._serve()
            if (piece := self.blobs.take_piece()) is not None:
                await self._send(piece)
            elif not served:
                await self._stirred.wait()
            else:
                await asyncio.sleep(0)  # a peer that takes all at once gives nobody else a turn

    async def _serve(self) -> bool:
        """Send one page; False when there is none, or no credit for it."""
        turn = self._serving.next() if self._allowance.open else None
        if turn is None:
            return False
        stream, reading = turn
        try:
            page = self._shelf.page(stream, reading.epoch, reading.after)
        except CursorError as error:
            if stream == self._local.identity.node:
                await self._send_floor(error, stream, reading.ask)
                return True
            self._serving.drop(stream)  # a copy that was trimmed or begun anew: say what there is now
            self._outgoing.grown(stream)
            return True
        if page is None:
            return self._serving.idle(stream)
        part = whole(page) if reading.filter is Filter.ALL else excerpt(page, self.peer)
        self._serving.sent(stream, page.epoch, page.checkpoint.seq)
        self._allowance.spend(page_bytes(part), page.checkpoint.seq)
        await self._send(Entries(stream, part, reading.ask))
        return True

    async def _send_floor(self, error: CursorError, stream: NodeId, ask: int) -> None:
        """The peer wants what was forgotten: it goes on at the floor. Raises the error when it cannot."""
        if self.version == 1 or not isinstance(error, CursorBelowFloor) or not (floor := self._shelf.floor()):
            raise error
        self._serving.sent(stream, floor.epoch, floor.seq)
        await self._send(Floor(stream, ask, floor.epoch, floor.seq, floor.hash, floor.signature))

    async def _announce(self) -> None:
        """Tell of streams that grow and are read elsewhere: who loses a source finds another at once."""
        while True:
            stocks = [stock for node in await self._outgoing.growth() if (stock := self._shelf.stock(node))]
            self._outgoing.have(stocks)
            self._stirred.set()
            await asyncio.sleep(HAVE_EVERY_S)

    async def _until_ended(self) -> None:
        await self._ended

    def _want(self, want: Want) -> None:
        self._outgoing.want(want)
        self._stirred.set()

    async def _send(self, frame: Frame) -> None:
        await self._socket.send(encode(frame, self.version))

    async def _say_bye(self, error: MeshError) -> None:
        log.warning("link.ended", peer=self.peer, code=error.code, why=str(error), hint=error.hint)
        try:
            await self._send(Bye(error.code, ": ".join(filter(None, (str(error), error.hint)))[:300]))
            await self._socket.close(CLOSE_POLICY, error.code)
        except SocketClosed:
            return
