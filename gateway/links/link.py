"""One link: two gateways read each other's outbox over one socket.

Frames and their bytes are in ``gateway.wire``. Both sides speak at once: each says who it is, what it has and
what it wants, then pages flow as they are committed. ``seen`` follows the reader's commit and returns credit.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

import structlog

from gateway.clock import Clock
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.inputs import ClockMeasured, LinkDown, LinkUp, PageRead, StreamHead
from gateway.limits import PING_EVERY_S
from gateway.links.errors import LinkEnded, SocketClosed, VersionRefused
from gateway.links.limits import LINK_STARTS_WITHIN_S
from gateway.links.socket import Socket
from gateway.links.window import Window
from gateway.runtime import Runtime
from gateway.wire.codec import decode, encode
from gateway.wire.frames import (
    VERSION,
    VERSIONS,
    Bye,
    Entries,
    Frame,
    Have,
    Hello,
    Ping,
    Pong,
    Seen,
    Want,
    common_version,
)
from outbox.chain import Head, Page, Verify, check_signature
from outbox.errors import BadFrame, MeshError
from outbox.groups import first_of
from outbox.ids import Epoch, NodeId, Seq
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.records import Identity

log = structlog.get_logger(__name__)

CLOSE_NORMAL = 1000
CLOSE_POLICY = 1008


class Committed(Protocol):
    """What is committed in the own journal, as a link asks for it."""

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was handled."""
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows in the own outbox. Raises CursorError branches."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """What every link of this gateway shares."""

    identity: Identity
    runtime: Runtime
    reader: Committed
    clock: Clock


class Link:
    """A link to one peer, from the first frame to the last."""

    def __init__(self, local: Local, peer: NodeId, verify: Verify, socket: Socket, *, dialled: bool) -> None:
        self.peer = peer
        self.dialled = dialled
        self.since_ms = local.clock.wall_ms()
        self.clock_offset_ms: int | None = None
        """How far the peer's clock is ahead of ours, give or take half a round trip."""
        self._local = local
        self._verify = verify
        self._socket = socket
        self._window = Window()
        self._wanted: asyncio.Future[Want] = asyncio.get_running_loop().create_future()
        self._handled: Head | None = None
        self._handled_more = asyncio.Event()
        self._up: LinkUp | None = None
        self._heard_ms = local.clock.mono_ms()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve and read until the socket closes or somebody breaks a rule; a peer's fault raises nothing."""
        try:
            await self._greet()
            async with asyncio.TaskGroup() as tasks:
                for part in (self._read(), self._serve(), self._report(), self._ping(), self._until_ended()):
                    tasks.create_task(part)
        except* SocketClosed as gone:
            log.info("link.closed", peer=self.peer, why=str(first_of(gone)))
        except* MeshError as broken:
            await self._say_bye(first_of(broken))
        finally:
            if self._ended.done() and not self._ended.cancelled():
                self._ended.exception()  # an end that came before anybody waited for it has been heard too
            await self._socket.close(CLOSE_NORMAL, "")

    def handled(self, head: Head) -> None:
        """The peer's outbox was committed here up to this head."""
        self._handled = head
        self._handled_more.set()

    def remind(self) -> None:
        """The engine was built anew: say again what the peer has advertised."""
        if self._up is not None:
            self._local.runtime.tell_now(self._up)

    def gone(self) -> None:
        """There is no link with this peer any more."""
        self._local.runtime.tell_now(LinkDown(self.peer))

    def end(self, error: MeshError) -> None:
        """Close the link for this reason."""
        if not self._ended.done():
            self._ended.set_exception(error)

    # --- parts

    async def _greet(self) -> None:
        who, clock = self._local.identity, self._local.clock
        await self._send(Hello(VERSION, VERSIONS, who.node, who.mesh, clock.wall_ms()))
        try:
            async with asyncio.timeout(LINK_STARTS_WITHIN_S):
                hello = decode(await self._socket.receive())
        except TimeoutError:
            raise LinkEnded(f"{self.peer} opened a link and says nothing") from None
        if not isinstance(hello, Hello) or (hello.node, hello.mesh) != (self.peer, who.mesh):
            raise BadFrame(f"the first frame is not the hello of {self.peer}")
        if common_version(hello.versions) is None:
            raise VersionRefused(
                f"{self.peer} speaks versions {hello.versions}",
                hint=f"this gateway speaks {VERSIONS}: update one",
            )
        head = self._local.runtime.feed.head
        await self._send(Have(who.node, head.epoch, head.seq, head.hash))
        cursor = self._local.reader.cursor(self.peer)
        await self._send(Want(self.peer, cursor.epoch if cursor else None, cursor.seq if cursor else 0))

    async def _read(self) -> None:
        while True:
            frame = decode(await self._socket.receive())
            self._heard_ms = self._local.clock.mono_ms()
            match frame:
                case Entries():
                    await self._take(frame)
                case Seen():
                    self._window.seen(frame.seq)
                case Want():
                    self._want(frame)
                case Ping():
                    await self._send(Pong(frame.at_ms, self._local.clock.wall_ms()))
                case Pong():
                    self._measure(frame)
                case Bye():
                    raise LinkEnded(f"{self.peer} closed the link: {frame.code}", hint=frame.hint)
                case Have():
                    self._advertised(frame)
                case Hello():
                    raise BadFrame("hello comes once")

    async def _take(self, frame: Entries) -> None:
        if frame.node != self.peer:
            raise BadFrame(f"{self.peer} sent entries of {frame.node}")
        mesh = self._local.identity.mesh
        check_signature(frame.page.checkpoint, mesh, self.peer, self._verify)
        crashpoint(CrashPoint.LINK_BEFORE_SUBMIT)
        if self._ended.done():
            return  # a page before this one was not kept: this one would leave a hole
        await self._local.runtime.tell(PageRead(self.peer, frame.page))

    def _advertised(self, frame: Have) -> None:
        if frame.node != self.peer:
            raise BadFrame(f"{self.peer} has only its own outbox to offer")
        head = StreamHead(frame.node, frame.epoch, Seq(frame.seq))
        self._up = LinkUp(self.peer, (head,))
        self._local.runtime.tell_now(self._up)

    def _want(self, frame: Want) -> None:
        if frame.node != self._local.identity.node or self._wanted.done():
            raise BadFrame("want names another outbox, or comes twice")
        self._wanted.set_result(frame)

    async def _serve(self) -> None:
        want = await self._wanted
        feed = self._local.runtime.feed
        epoch, seq = want.epoch or feed.head.epoch, want.after
        self._local.reader.read(Head(epoch, Seq(seq), b""), 1, 1)  # raises for a cursor that cannot be
        while True:
            await feed.beyond(seq)
            for page in self._pages(epoch, seq):
                await self._window.opened()
                await self._send(Entries(self._local.identity.node, page))
                seq = page.checkpoint.seq
                self._window.sent(seq, sum(len(entry.header) + len(entry.body) for entry in page.entries))

    def _pages(self, epoch: Epoch, seq: int) -> list[Page]:
        recent = self._local.runtime.feed.after(seq)
        if recent is not None:
            return recent
        page = self._local.reader.read(Head(epoch, Seq(seq), b""), PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
        return [] if page is None else [page]

    async def _report(self) -> None:
        while True:
            await self._handled_more.wait()
            self._handled_more.clear()
            head = self._handled
            if head is not None:
                crashpoint(CrashPoint.LINK_AFTER_COMMIT)
                await self._send(Seen(self.peer, head.epoch, head.seq))
                crashpoint(CrashPoint.LINK_AFTER_SEEN)

    async def _ping(self) -> None:
        clock = self._local.clock
        while True:
            await self._send(Ping(clock.mono_ms()))
            await asyncio.sleep(PING_EVERY_S)
            if clock.mono_ms() - self._heard_ms > 2 * PING_EVERY_S * 1000:
                raise LinkEnded(f"{self.peer} has been silent too long")

    async def _until_ended(self) -> None:
        await self._ended

    def _measure(self, pong: Pong) -> None:
        clock = self._local.clock
        half_ms = (clock.mono_ms() - pong.at_ms) // 2
        self.clock_offset_ms = pong.time_ms + half_ms - clock.wall_ms()
        self._local.runtime.tell_now(ClockMeasured(self.peer, self.clock_offset_ms, half_ms))

    async def _send(self, frame: Frame) -> None:
        await self._socket.send(encode(frame))

    async def _say_bye(self, error: MeshError) -> None:
        log.warning("link.ended", peer=self.peer, code=error.code, why=str(error), hint=error.hint)
        try:
            await self._send(Bye(error.code, f"{error}"[:300]))
            await self._socket.close(CLOSE_POLICY, error.code)
        except SocketClosed:
            return
