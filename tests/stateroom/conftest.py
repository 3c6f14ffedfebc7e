"""A small mesh of real keys, and rooms joined by in-memory duplex channels."""

import asyncio
import hashlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from outbox import base64url
from outbox.chain import Checkpoint, Head, sign_checkpoint
from outbox.forks import ForkProof, fold
from outbox.ids import Epoch, NodeId, Seq
from stateroom.bodies import (
    ROOT,
    ActivityBody,
    AdmissionBody,
    AgentBody,
    Body,
    CursorsBody,
    ForkBody,
    HeartbeatBody,
    NodeBody,
    RoomMap,
)
from stateroom.forks import fork_body, fork_key_of
from stateroom.index import Index
from stateroom.outflow import Closed
from stateroom.pace import Pace
from stateroom.presence import Presence
from stateroom.records import sign_record, thumbprint
from stateroom.room import Room
from stateroom.store import RoomStore

STATE = frozenset({RoomMap.NODES, RoomMap.ADMISSIONS, RoomMap.AGENTS})
EPOCH = "000001-0123456789ab"


@cache
def private_key(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def public_key(name: str) -> bytes:
    return private_key(name).public_key().public_bytes_raw()


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


class Mesh:
    """Makes the records of a mesh. ``seed`` is admitted by the root; others as the test says."""

    id = thumbprint(public_key("root"))

    def record(
        self,
        room_map: RoomMap,
        key: str,
        signer: str,
        body: Body | None,
        *,
        counter: int = 1,
        epoch: int = 1,
        forged_by: str | None = None,
    ) -> str:
        return sign_record(
            private_key(forged_by or signer).sign,
            mesh=self.id,
            room_map=room_map,
            key=key,
            signer=signer,
            epoch=epoch,
            counter=counter,
            body=body,
            root_key=public_key("root") if signer == ROOT else b"",
        )

    def admission(
        self,
        node: str,
        *,
        by: str = "seed",
        role: str = "member",
        counter: int = 1,
        key: str | None = None,
        reads_all: bool = False,
    ) -> str:
        named = base64url.encode(public_key(key or node))
        body = AdmissionBody(public_key=named, role=role, reads_all=reads_all)
        return self.record(RoomMap.ADMISSIONS, node, by, body, counter=counter)

    def founder(self) -> str:
        return self.admission("seed", by=ROOT, role="seed")

    def node(self, node: str, *, head_seq: int = 0, **options: object) -> str:
        body = NodeBody(
            endpoints=(f"http://127.0.0.1:1/{node}",),
            outbox_epoch=EPOCH,
            head_seq=head_seq,
            head_hash="00",
            software="t",
        )
        return self.record(RoomMap.NODES, node, node, body, **options)

    def agent(
        self,
        agent: str,
        owner: str,
        *,
        by: str | None = None,
        owner_epoch: int = 1,
        status: str = "active",
        handover: str = "",
        **options: object,
    ) -> str:
        body = AgentBody(owner=owner, owner_epoch=owner_epoch, status=status, handover=handover)
        return self.record(RoomMap.AGENTS, agent, by or owner, body, **options)

    def cursors(self, node: str, cursors: dict[str, tuple[str, int]], **options: object) -> str:
        return self.record(
            RoomMap.CURSORS, node, node, CursorsBody(cursors=cursors, head=(EPOCH, 7)), **options
        )

    def fork(
        self, node: str, *, known: int = 5, leaves: int = 2, epoch: str = EPOCH, other: str = "b"
    ) -> ForkProof:
        """A node has signed ``known`` of one history and, further on, another one."""
        branch = hashlib.sha256(f"{node} {other}".encode()).digest()
        after = tuple(hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(leaves))
        return ForkProof(
            self.checkpoint(node, epoch, known, hashlib.sha256(node.encode()).digest()),
            self.checkpoint(node, epoch, known + leaves, fold(branch, after)),
            branch,
            after,
        )

    def checkpoint(self, node: str, epoch: str, seq: int, digest: bytes) -> Checkpoint:
        head = Head(Epoch(epoch), Seq(seq), digest)
        return sign_checkpoint(self.id, NodeId(node), head, private_key(node).sign)

    def fork_record(
        self, proof: ForkProof, by: str, *, body: ForkBody | None = None, key: str = "", **options: object
    ) -> str:
        return self.record(RoomMap.FORKS, key or fork_key_of(proof), by, body or fork_body(proof), **options)

    def heartbeat(self, node: str, at_ms: int, **options: object) -> str:
        return self.record(RoomMap.PRESENCE, node, node, HeartbeatBody(at_ms=at_ms), counter=at_ms, **options)

    def activity(self, node: str, counter: int, agents: dict[str, int], **options: object) -> str:
        body = ActivityBody(agents=agents)
        return self.record(RoomMap.ACTIVITY, node, node, body, counter=counter, **options)

    def index(self, *nodes: str) -> Index:
        """An index that knows the seed and these members."""
        index = Index(self.id, verify)
        index.offer("admissions", "seed", self.founder())
        for node in nodes:
            index.offer("admissions", node, self.admission(node))
        return index


@pytest.fixture(scope="session")
def mesh() -> Mesh:
    return Mesh()


class Pipe:
    """One direction of a connection: at most ``size`` frames under way, then ``send`` waits."""

    def __init__(self, size: int = 64) -> None:
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(size)
        self.broken = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        if self.broken.is_set():
            raise ConnectionError("broken")
        await self._or_broken(self.queue.put(frame))

    async def recv(self) -> bytes | None:
        return await self._or_broken(self.queue.get())

    async def _or_broken(self, call: Awaitable[bytes | None]) -> bytes | None:
        work = asyncio.ensure_future(call)
        broken = asyncio.ensure_future(self.broken.wait())
        try:
            await asyncio.wait({work, broken}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise ConnectionError("broken")
        finally:
            work.cancel()
            broken.cancel()


class Wire:
    """Two pipes; ``cut`` breaks both at once, like a cable."""

    def __init__(self, size: int = 64) -> None:
        self.there = Pipe(size)
        self.back = Pipe(size)

    def cut(self) -> None:
        self.there.broken.set()
        self.back.broken.set()


class Bench:
    """Rooms and wires of one test, all stopped at its end."""

    def __init__(self, tmp_path: Path, mesh: Mesh, tasks: asyncio.TaskGroup) -> None:
        self.mesh = mesh
        self.tmp_path = tmp_path
        self.tasks = tasks
        self.closed: dict[str, Closed] = {}
        self.running: list[asyncio.Task[object]] = []
        self.changes: dict[str, int] = {}
        self.indexes: dict[str, Index] = {}
        self.presences: dict[str, Presence] = {}
        self.runs: dict[str, asyncio.Task[None]] = {}
        self.stores: dict[str, RoomStore] = {}
        self.now = 1_000_000
        self._ids = itertools.count(1000)

    async def room(
        self,
        name: str,
        *,
        pace: Pace | None = None,
        maps: frozenset[RoomMap] = STATE,
        ms: Callable[[], int] | None = None,
    ) -> Room:
        index = self.indexes[name] = Index(self.mesh.id, verify)
        presence = self.presences[name] = Presence(index.heartbeat)
        store = self.stores[name] = RoomStore(self.tmp_path / f"{name}.db")
        room = Room(
            "state",
            maps,
            store,
            index,
            now_ms=ms or (lambda: self.now),
            new_client_id=lambda: next(self._ids),
            on_change=lambda: self.changes.__setitem__(name, self.changes.get(name, 0) + 1),
            presence=presence,
            pace=pace or Pace(window_s=0.002, tick_s=0.02),
        )
        await room.load()
        self.runs[name] = self.start(room.run())
        return room

    def start(self, coroutine: Awaitable[object]) -> asyncio.Task:
        task = self.tasks.create_task(coroutine)
        self.running.append(task)
        return task

    def join(
        self, dialled: Room, accepted: Room, name: str = "link", *, size: int = 64, **options: object
    ) -> Wire:
        wire = Wire(size)
        end = dialled.serve(wire.there.send, wire.back.recv, peer=f"{name}:dialled")
        self.start(self._serve(f"{name}:dialled", end, wire))
        end = accepted.serve(wire.back.send, wire.there.recv, peer=f"{name}:accepted", **options)
        self.start(self._serve(f"{name}:accepted", end, wire))
        return wire

    def attach(self, room: Room, name: str = "raw", *, size: int = 64, **options: object) -> Wire:
        """A wire whose ``there`` end is in the test's hands: send on ``there``, receive on ``back``."""
        wire = Wire(size)
        end = room.serve(wire.back.send, wire.there.recv, peer=name, **options)
        self.start(self._serve(name, end, wire))
        return wire

    async def _serve(self, name, serving, wire) -> None:
        self.closed[name] = await serving
        wire.cut()

    def found(self, mesh: Room) -> None:
        """Admit the seed."""
        mesh.put(RoomMap.ADMISSIONS, "seed", self.mesh.founder())


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition, looking at it whenever the loop has turned."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "condition never came true"
        await asyncio.sleep(0.002)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    return until


@pytest.fixture
async def bench(tmp_path: Path, mesh: Mesh) -> AsyncIterator[Bench]:
    async with _bench(tmp_path, mesh) as made:
        yield made


@asynccontextmanager
async def _bench(tmp_path: Path, mesh: Mesh) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        made = Bench(tmp_path, mesh, tasks)
        yield made
        for task in made.running:
            task.cancel()
        for store in made.stores.values():
            stack.callback(store.close)
