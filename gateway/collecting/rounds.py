"""Collects a mesh over links: every outbox from the first gateway that is reached and has it.

Whoever collects is a node of its own, admitted like any other (``gateway join``), whose gateway does not run:
its key opens the sockets, and the state room tells the keys that everything is verified with. Seeds are asked
first, since they keep copies of all; a node whose outbox none of them has is dialled itself.

A link that is lost costs nothing: what came is in the lake, and the next round goes on after it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, closing

import msgspec
from msgspec.structs import replace

from gateway.clock import Clock
from gateway.collecting.sessions import Sessions
from gateway.collecting.visitor import Visitor
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.home import Home
from gateway.lake.collector import Collected, collect, together
from gateway.lake.ended import CountedSource, end_of, ends, verify_of
from gateway.lake.holes import holes
from gateway.lake.lake import Lake
from gateway.lake.proofs import keep_proofs
from gateway.links.contacts import Contact
from outbox.chain import Checkpoint, Head, Page, Verify, genesis
from outbox.errors import HomeLocked, MeshError, NotFound, PeerError
from outbox.forks import ForkProof
from outbox.groups import first_of
from outbox.ids import Epoch, MeshId, NodeId, Seq, epoch_ordinal
from outbox.lock import HomeLock
from outbox.reader import JournalReader
from spark.limits import LOOK_AROUND_S

Progress = Callable[[NodeId, int], None]
"""``progress(whose outbox, place reached)``: after it is on disk."""


class Unread(msgspec.Struct, frozen=True):
    """A gateway that was not reached, or an outbox that was not read to its end."""

    node: NodeId
    code: str
    why: str


class Round(msgspec.Struct, frozen=True):
    """What one round over all gateways came to."""

    found: dict[NodeId, Collected]
    unread: tuple[Unread, ...]
    absent: tuple[NodeId, ...]
    """Nodes whose outbox nobody had who was reached."""
    ended: Mapping[NodeId, Seq] = {}
    """Nodes that were put out, and the last place of each that counts; 0: none."""
    forks: tuple[ForkProof, ...] = ()
    """Proofs of the state room that the lake did not have."""


class RemoteSource:
    """An outbox at the other end of a link, for the collector, which waits in a thread of its own."""

    def __init__(self, visitor: Visitor, stream: NodeId, mesh: MeshId, *, earlier: bool = False) -> None:
        """``earlier``: for epochs that ended."""
        self._visitor, self._stream, self._mesh = visitor, stream, mesh
        self._page = visitor.earlier_page if earlier else visitor.page
        self._loop = asyncio.get_running_loop()
        self.is_writer = visitor.peer == stream

    def genesis(self) -> Head:
        """Before the first entry of the epoch that is offered: earlier ones come after it."""
        return genesis(self._mesh, self._stream, self._visitor.stocks[self._stream].epoch)

    def floor(self) -> Checkpoint | None:
        """Where what can be had begins."""
        return self._visitor.floors.get(self._stream)

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:  # noqa: ARG002 - writers cut
        """The next page. Raises PeerError branches."""
        return asyncio.run_coroutine_threadsafe(self._page(self._stream, after), self._loop).result()


class _Tally:
    """A round as it goes."""

    def __init__(self, only: Collection[NodeId], progress: Progress) -> None:
        self.progress = progress
        self.found: dict[NodeId, Collected] = {}
        self.unread: list[Unread] = []
        self.first: MeshError | None = None
        """Why the first gateway was not read."""
        self._only = frozenset(only)

    def wants(self, node: NodeId) -> bool:
        """Whether an outbox is still to be read."""
        return node not in self.found and self.concerns(node)

    def concerns(self, node: NodeId) -> bool:
        """Whether it was asked for."""
        return not self._only or node in self._only

    def add(self, node: NodeId, done: Collected) -> None:
        """An outbox was read, or more of its earlier epochs."""
        before = self.found.get(node)
        self.found[node] = done if before is None else together(before, done)

    def failed(self, node: NodeId, error: MeshError) -> None:
        """A gateway or an outbox was not read."""
        self.first = self.first or error
        self.unread.append(Unread(node, error.code, ": ".join(filter(None, (str(error), error.hint)))))


class Rounds:
    """Use ``opened``; then ``collect`` as often as wanted."""

    def __init__(self, sessions: Sessions, lake: Lake, clock: Clock) -> None:
        self._sessions, self._lake, self._clock = sessions, lake, clock
        self._asked_ms: dict[NodeId, int] = {}
        """When a gateway was dialled last, on the monotonic clock."""
        self._filled_ms: dict[NodeId, int] = {}
        """When a node was asked for what is missing of its own outbox, likewise."""

    @classmethod
    @asynccontextmanager
    async def opened(cls, home: Home, lake: Lake, clock: Clock) -> AsyncIterator["Rounds"]:
        """For a home whose gateway does not run. Raises HomeLocked, HomeError, StorageFailed."""
        home.check()
        with closing(JournalReader.open(home.journal)) as reader:
            who = reader.identity()
        try:
            with _alone(home):
                async with asyncio.TaskGroup() as tasks:
                    sessions = Sessions(home, who, clock, tasks)
                    try:
                        await sessions.load()
                        yield cls(sessions, lake, clock)
                    finally:
                        await sessions.close()
        except BaseExceptionGroup as group:
            raise first_of(group) from None

    async def collect(self, only: Collection[NodeId] = (), progress: Progress = lambda *_: None) -> Round:
        """Bring the lake up to what can be reached; of ``only`` these nodes, if it names any.

        What is a peer's fault is told in the result. Raises Unreachable (or TimedOut, Denied) when nobody
        was reached, NotFound for a node that is not of the mesh, LakeBusy, LakeDamaged, StorageFailed.
        """
        tally = _Tally(only, progress)
        reached = False
        for contact in self._sessions.contacts():
            fills = self._is_to_fill(contact, tally)
            if (
                reached
                and not fills
                and contact.node not in self._missing(tally)
                and not self._may_know_more(contact, tally)
                and not self._may_know_ended(contact, tally)
            ):
                continue
            self._asked_ms[contact.node] = self._clock.mono_ms()
            try:
                visitor = await self._sessions.visitor(contact)
                reached = True
                await self._read(visitor, contact, tally, fills=fills)
            except (Unreachable, TimedOut, Denied, PeerError) as error:
                tally.failed(contact.node, error)
                await self._sessions.leave(contact)
        if not reached:
            raise tally.first or Unreachable("this node knows nobody to dial", hint="gateway join first")
        out = ends(self._sessions.view)
        unknown = sorted(node for node in only if self._sessions.view.node(node) is None and node not in out)
        if unknown:
            raise NotFound(f"{unknown[0]} is no node of this mesh", hint="see: gateway nodes")
        forks = await asyncio.to_thread(keep_proofs, self._lake, self._sessions.proofs())
        absent = self._missing(tally) | self._unread_ends(tally)
        told = {node: seq for node, seq in out.items() if tally.concerns(node)}
        return Round(tally.found, tuple(tally.unread), tuple(sorted(absent)), told, tuple(forks))

    def _missing(self, tally: _Tally) -> set[NodeId]:
        """Nodes that have written something, as far as the room knows, and were not collected yet."""
        peers = self._sessions.view.peers(self._sessions.who.node)
        return {peer.node for peer in peers if peer.outbox_epoch is not None and tally.wants(peer.node)}

    def _unread_ends(self, tally: _Tally) -> set[NodeId]:
        """Nodes that were put out, and of which the lake has less than counts."""
        view, mesh = self._sessions.view, self._sessions.who.mesh
        found = set()
        for node in filter(tally.concerns, view.revocations):
            last, have = end_of(view, node), self._lake.cursor(mesh, node)
            if last is not None and (have is None or _order(have) < _order(last.head)):
                found.add(node)
        return found

    def _may_know_ended(self, contact: Contact, tally: _Tally) -> bool:
        """Whether a copy of what a node had said before it was put out may be here: itself is not dialled."""
        now_ms = self._clock.mono_ms()
        if now_ms - self._asked_ms.get(contact.node, -LOOK_AROUND_S * 1000) < LOOK_AROUND_S * 1000:
            return False
        return self._sessions.view.reads_all(contact.node) and bool(self._unread_ends(tally))

    def _may_know_more(self, contact: Contact, tally: _Tally) -> bool:
        """Whether earlier epochs of an outbox may be here that were not asked for lately.

        Their writer may have forgotten them, and each copy goes as far as it had been read by then.
        """
        now_ms, view = self._clock.mono_ms(), self._sessions.view
        if now_ms - self._asked_ms.get(contact.node, -LOOK_AROUND_S * 1000) < LOOK_AROUND_S * 1000:
            return False
        asked = self._sessions.looked(contact)
        return any(
            _has_earlier(epoch := peer.outbox_epoch)
            and asked.get(peer.node) != epoch
            and tally.concerns(peer.node)
            and (peer.node == contact.node or view.reads_all(contact.node))
            for peer in view.peers(self._sessions.who.node)
        )

    def _is_to_fill(self, contact: Contact, tally: _Tally) -> bool:
        """Whether some of its outbox is missing before other entries, and it was not asked for it lately."""
        now_ms, node = self._clock.mono_ms(), contact.node
        is_due = now_ms - self._filled_ms.get(node, -LOOK_AROUND_S * 1000) >= LOOK_AROUND_S * 1000
        if not (is_due and tally.concerns(node) and any(holes(self._lake, self._sessions.who.mesh, node))):
            return False
        self._filled_ms[node] = now_ms
        return True

    async def _read(self, visitor: Visitor, contact: Contact, tally: _Tally, *, fills: bool) -> None:
        """All that one gateway offers and nobody had before it, and of its own outbox what is missing.

        Raises PeerError when the link is over.
        """
        if any(self._verify_of(node) is None for node in visitor.stocks):
            await self._sessions.look_around(contact)
        for node in sorted(visitor.stocks.keys() - {self._sessions.who.node}):
            verify = self._verify_of(node)
            epoch = visitor.stocks[node].epoch
            older = visitor.looked.get(node) != epoch and (_has_earlier(epoch) or self._is_past(node, epoch))
            fill = fills and node == contact.node
            if verify is None or not (tally.wants(node) or fill or (older and tally.concerns(node))):
                continue
            try:
                done = await self._collect(visitor, node, verify, tally.progress, earlier=older, fills=fill)
                tally.add(node, done)
                visitor.looked[node] = epoch
            except PeerError as fault:
                if visitor.fault is not None:
                    raise
                tally.failed(node, fault)

    def _is_past(self, node: NodeId, epoch: Epoch) -> bool:
        """Whether the lake stands in a later epoch: a gateway that has started may have read no more yet."""
        have = self._lake.cursor(self._sessions.who.mesh, node)
        return have is not None and epoch_ordinal(epoch) < epoch_ordinal(have.epoch)

    async def _collect(
        self,
        visitor: Visitor,
        node: NodeId,
        verify: Verify,
        progress: Progress,
        *,
        earlier: bool,
        fills: bool,
    ) -> Collected:
        who = self._sessions.who
        return await asyncio.to_thread(
            collect,
            self._source(visitor, node),
            self._lake,
            replace(who, node=node),
            verify,
            now_ms=self._clock.wall_ms(),
            progress=lambda seq: progress(node, seq),
            earlier=self._source(visitor, node, earlier=True) if earlier else None,
            fills=fills,
        )

    def _source(self, visitor: Visitor, node: NodeId, *, earlier: bool = False) -> CountedSource:
        source = RemoteSource(visitor, node, self._sessions.who.mesh, earlier=earlier)
        return CountedSource(source, self._sessions.view, node)

    def _verify_of(self, node: NodeId) -> Verify | None:
        return verify_of(self._sessions.view, node)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq


def _has_earlier(epoch: Epoch | None) -> bool:
    return epoch is not None and epoch_ordinal(epoch) > 1


def _alone(home: Home) -> HomeLock:
    try:
        return HomeLock(home.lock)
    except HomeLocked as error:
        raise HomeLocked(
            f"the gateway of {home.root} runs, and two cannot be one node",
            hint="join a node of its own to collect as, or collect what this one holds: without --links",
        ) from error
