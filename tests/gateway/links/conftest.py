"""Gateways in one process, and links between them over sockets that are two queues."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from hashlib import sha512
from typing import Any

import msgspec
import pytest

from gateway.blobs.keeper import BlobKeeper
from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.engine import Engine
from gateway.engine.inputs import AddAgent, Now, Send
from gateway.engine.own_stream import OwnStream
from gateway.engine.policy import MirrorPolicy, Policy
from gateway.harness.sim.blobdisk import SimBlobs
from gateway.hosting.inline import InlineHost
from gateway.hosting.ticking import Ticking
from gateway.links.errors import SocketClosed
from gateway.links.fetching import Fetcher
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.registry import Registry
from gateway.outlets import GatewayOutlets
from gateway.runtime import Runtime
from gateway.wire.codec import decode, encode
from gateway.wire.frames import VERSION, Frame
from outbox.blobref import BlobRef
from outbox.chain import Verify
from outbox.ids import AgentId, Epoch, MeshId, NodeId
from outbox.memory import MemoryStore
from outbox.records import Identity
from stateroom.view import NodeView, OwnerView, RevocationView, View

MESH = MeshId("m" * 43)
EPOCH = Epoch("000001-0123456789ab")
WITHIN_S = 60.0


class Wire:
    """One end of a connection in memory."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue(10_000)
        self.other: Wire
        self.version = VERSION
        self.closed: tuple[int, str] | None = None
        self.tap: Callable[[bytes], object] = lambda _: None
        """Hears what this end receives."""
        self.change: Callable[[bytes], bytes] = lambda message: message
        """What becomes of a message that this end sends."""

    async def send(self, message: bytes) -> None:
        if self.closed is not None or self.other.closed is not None:
            raise SocketClosed("it is closed")
        await self.other.inbox.put(self.change(message))

    async def receive(self) -> bytes:
        message = await self.inbox.get()
        if message is None:
            raise SocketClosed("the other side is gone")
        self.tap(message)
        return message

    async def close(self, code: int, reason: str) -> None:
        if self.closed is None:
            self.closed = (code, reason)
            await self.other.inbox.put(None)

    # --- for a test that is the peer itself

    async def say(self, *frames: Frame) -> None:
        for frame in frames:
            await self.send(encode(frame, self.version))

    async def hear(self, kind: type[Frame], such: Callable[[Any], bool] = lambda _: True) -> Any:
        """The next frame of a kind."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                frame = decode(await self.receive(), self.version)
                if isinstance(frame, kind) and such(frame):
                    return frame


def wires() -> tuple[Wire, Wire]:
    near, far = Wire(), Wire()
    near.other, far.other = far, near
    return near, far


def sign(node: str, text: bytes) -> bytes:
    return sha512(node.encode() + text).digest()


def verify_of(node: str) -> Verify:
    return lambda signature, text: signature == sign(node, text)


class _Nothing:
    """Agents and the room hear nothing in these tests."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Gateway:
    """A node with everything between its journal and its links."""

    def __init__(self, name: str, mesh: "Mesh") -> None:
        self.name = NodeId(name)
        self.mesh = mesh
        self.store = MemoryStore(Identity(MESH, self.name, EPOCH))
        self.clock = Clock()
        self.policy = Policy(mirror=MirrorPolicy(nodes="all" if name.startswith("seed") else "none"))
        self.disk = SimBlobs(lambda: False)
        self.words = Words()
        self.runtime: Runtime
        self.registry: Registry
        self.blobs: BlobKeeper
        self.fetcher: Fetcher
        self.engine: Engine

    def start(self) -> None:
        self.own = OwnStream(self.store.identity().epoch)
        self.own.answered(NodeId("elsewhere"), 0)
        view, now = self.mesh.view(), Now(self.clock.wall_ms(), self.clock.mono_ms())
        host = InlineHost(Ticking(self.store, self._engine, view, now))
        self.runtime = Runtime(host, self.store, view, self.clock)
        mirror = self.policy.mirror
        self.blobs = BlobKeeper(self.disk, self.runtime, self.store, 1 << 30)
        self.local = Local(
            self.store.identity(),
            self.runtime,
            self.store,
            self.clock,
            self._key_of,
            mirror,
            self.blobs,
            self.words,
        )
        self.registry = Registry(self.local)
        self.fetcher = Fetcher(self.blobs, self.runtime, self.registry, self.clock, 1 << 30)
        self.runtime.outlets = GatewayOutlets(
            _Nothing(),
            self.registry,
            _Nothing(),
            _Nothing(),
            began=lambda: None,
            blobs=self.blobs,
            missing=self.fetcher.missing,
        )  # type: ignore[arg-type]
        self.see()

    def see(self) -> None:
        self.runtime.see(self.mesh.view())
        self.registry.see(self.mesh.view())

    def _key_of(self, node: NodeId, /) -> Verify | None:
        return verify_of(node) if node in self.mesh.names else None

    def _engine(self, view: View, now: Now) -> Engine:
        self.engine = Engine(
            self.store,
            view,
            lambda text: sign(self.name, text),
            self.clock,
            now,
            policy=self.policy,
            limits=CourierLimits(),
            desk=_Nothing(),
            own=self.own,
        )
        return self.engine

    def link(self, peer: str, wire: Wire, *, dialled: bool = True) -> Link:
        return Link(self.local, NodeId(peer), verify_of(peer), wire, dialled=dialled)

    async def add(self, agent: str) -> None:
        await self.runtime.ask(AddAgent(self.runtime.req(), AgentId(agent), b"\0" * 32))
        self.mesh.owners[agent] = self.name
        for gateway in self.mesh.gateways.values():
            gateway.see()

    async def keep(self, content: bytes) -> BlobRef:
        """A blob is here."""
        async with self.blobs.unnamed("upload") as incoming:
            if content:
                await incoming.write(content)
            kept = await incoming.keep()
        return BlobRef(kept.sha256, kept.bytes)

    async def send_blob(self, agent: str, to: str, ref: BlobRef) -> Any:
        null = msgspec.Raw(b"null")
        request = Send(req=self.runtime.req(), agent=AgentId(agent), to=to, payload=null, payload_ref=ref)
        return await self.runtime.ask(request)

    async def send(self, agent: str, to: str, text: str = "x") -> Any:
        payload = msgspec.Raw(msgspec.json.encode(text))
        return await self.runtime.ask(
            Send(req=self.runtime.req(), agent=AgentId(agent), to=to, payload=payload)
        )


class Words:
    """What the state room of one node would say of revoked keys, and what it has heard."""

    def __init__(self) -> None:
        self.said: tuple[str, ...] = ()
        self.heard: list[str] = []

    def tell(self) -> tuple[str, ...]:
        return self.said

    def hear(self, texts: Iterable[str], /) -> None:
        self.heard += texts


class Mesh:
    """Some gateways that know each other."""

    def __init__(self, *names: str) -> None:
        self.names = [NodeId(name) for name in names]
        self.owners: dict[str, NodeId] = {}
        self.readers: set[str] = set()
        """Members that may read what is for others."""
        self.out: dict[NodeId, RevocationView] = {}
        """Nodes whose key was revoked."""
        self.version = 0
        self.gateways = {name: Gateway(name, self) for name in names}

    def view(self) -> View:
        self.version += 1
        return View(
            version=self.version,
            mesh=MESH,
            nodes={
                node: NodeView(
                    node=node,
                    public_key=b"\0" * 32,
                    role="seed" if node.startswith("seed") else "member",
                    reads_all=node in self.readers,
                )
                for node in self.names
                if node not in self.out
            },
            revocations={node: (word,) for node, word in self.out.items()},
            agents={
                AgentId(agent): OwnerView(agent=AgentId(agent), node=node, owner_epoch=1, status="active")
                for agent, node in self.owners.items()
            },
            cursors={},
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Mesh"]:
        for gateway in self.gateways.values():
            gateway.start()
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(part.run())
                for gateway in self.gateways.values()
                for part in (gateway.runtime, gateway.fetcher)
            ]
            try:
                yield self
            finally:
                for task in running:
                    task.cancel()

    @asynccontextmanager
    async def linked(self, one: str, other: str) -> AsyncIterator[tuple[Wire, Wire]]:
        """A link between two of them."""
        near, far = wires()
        async with asyncio.TaskGroup() as tasks:
            a, b = self.gateways[one], self.gateways[other]
            running = [
                tasks.create_task(a.registry.run_link(a.link(other, near))),
                tasks.create_task(b.registry.run_link(b.link(one, far, dialled=False))),
            ]
            try:
                yield near, far
            finally:
                for task in running:
                    task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(WITHIN_S):
        while not condition():
            await asyncio.sleep(0.002)


@pytest.fixture
async def around_a_seed() -> AsyncIterator[Mesh]:
    """``ann`` at a and ``bob`` at b, and a seed that both may meet."""
    async with Mesh("a", "b", "seed").running() as mesh:
        await mesh.gateways["a"].add("ann")
        await mesh.gateways["b"].add("bob")
        yield mesh


@pytest.fixture
async def pair() -> AsyncIterator[Mesh]:
    async with Mesh("a", "b").running() as mesh:
        await mesh.gateways["a"].add("ann")
        await mesh.gateways["b"].add("bob")
        yield mesh
