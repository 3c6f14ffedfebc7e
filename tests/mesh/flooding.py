"""An admitted node that floods another one with frames which are all in order.

Each flood is what one link or room takes as fast as its gateway reads it. It runs in a process of its own
(``python -m tests.mesh.flooding``), so that making the frames takes nothing from whoever measures.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from websockets.asyncio.client import ClientConnection

from auth.gateway_proofs import Pin
from auth.keys import SigningKey
from gateway.links.limits import GRANT_AT_BYTES
from gateway.wire.codec import decode
from gateway.wire.frames import BlobWant, Credit, Entries, Filter, Frame, Have, Ping, Seen, Stock, Want
from gateway.wire.limits import CREDIT_BYTES_MAX, HAVE_STREAMS_MAX
from gateway.wire.pages import page_bytes
from outbox.blobref import BlobId
from outbox.chain import Entry, Page, extend, sign_checkpoint
from outbox.envelope import Event, encode_header, header_of
from outbox.ids import AgentId, NodeId, Seq, epoch_ordinal, make_event_id
from outbox.limits import BATCH_ENTRIES_MAX
from outbox.readership import whole
from stateroom.bodies import Body, CursorsBody, HeartbeatBody, RoomMap
from stateroom.exchange import Awareness, SyncStep1, Update
from stateroom.exchange import Entry as Client
from stateroom.exchange import encode as encode_room
from stateroom.presence import client_of
from stateroom.records import sign_record
from stateroom.replica import Replica
from tests.mesh.knocking import Newcomer
from tests.mesh.piping import EPOCH, Pipe, open_pipe, open_socket

STARTED = b"flooding\n"
Flood = Callable[[Newcomer], Awaitable[None]]


class Plan(msgspec.Struct, frozen=True):
    """All that the process has to know."""

    flood: str
    port: int
    pin: Pin
    name: str
    seed: bytes


# --- over a link


class Writer:
    """Lab's own outbox, as long as somebody reads it."""

    def __init__(self, pipe: Pipe, entries: int, payload: str) -> None:
        self._pipe = pipe
        self._head = pipe.genesis
        self._entries = entries
        self._payload = msgspec.json.encode({"text": payload})
        self._left = 0
        self._granted = asyncio.Event()

    async def hear(self) -> None:
        while True:
            frame = decode(bytes(await self._pipe.socket.recv()))
            if isinstance(frame, Credit):
                self._left += frame.bytes
                self._granted.set()

    async def write(self, first_credit: int) -> None:
        self._left += first_credit
        while True:
            while self._left <= 0:
                self._granted.clear()
                await self._granted.wait()
            page = whole(self._page())
            self._left -= page_bytes(page)
            await self._pipe.send(Entries(self._pipe.node, page))

    def _page(self) -> Page:
        start, peer = self._head, self._pipe.peer
        entries = tuple(self._entry(Seq(start.seq + n)) for n in range(1, self._entries + 1))
        self._head = extend(start, entries)
        return Page(
            EPOCH, entries, sign_checkpoint(self._pipe.mesh, self._pipe.node, self._head, peer.key.sign)
        )

    def _entry(self, seq: Seq) -> Entry:
        event = Event(
            event_id=make_event_id(1_800_000_000_000 + seq, os.urandom(10)),
            kind="message",
            source_node_id=self._pipe.node,
            source_agent_id=AgentId("eve"),
            to_agent_id=AgentId("cat"),
            created_at="2026-11-28T00:00:00.000Z",
            payload=msgspec.Raw(self._payload),
        )
        body = msgspec.json.encode(event)
        return Entry(seq, encode_header(header_of(event, (NodeId("vps"),), len(body))), body)


def pages(entries: int, payload: str) -> Flood:
    """Pages of so many messages to the victim's agent ``cat``, as its credit allows."""

    async def flood(peer: Newcomer) -> None:
        async with open_pipe(peer) as pipe:
            credit = await _greeted(pipe)
            writer = Writer(pipe, entries, payload)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(writer.hear())
                tasks.create_task(writer.write(credit))

    return flood


def frames(*repeated: Callable[[int], Frame]) -> Flood:
    """These frames, over and over."""

    async def flood(peer: Newcomer) -> None:
        async with open_pipe(peer) as pipe:
            await _greeted(pipe)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_take(pipe.socket))
                number = 1
                while True:
                    number += 1
                    await pipe.send(*(make(number) for make in repeated))

    return flood


async def _greeted(pipe: Pipe) -> int:
    await pipe.greet(credit=CREDIT_BYTES_MAX)
    return GRANT_AT_BYTES


def _stocks(number: int) -> Have:
    return Have(
        tuple(Stock(NodeId(f"s{n}"), EPOCH, 1, number, bytes(32)) for n in range(HAVE_STREAMS_MAX - 1))
    )


# --- in a room


async def beats(peer: Newcomer) -> None:
    """Heartbeats, each with a higher counter."""
    async with in_room(peer, "state") as socket:
        counter = 2_000_000_000_000
        while True:
            counter += 1
            body = HeartbeatBody(at_ms=counter, links=(), endpoints=())
            text = _record(peer, RoomMap.PRESENCE, counter, body)
            state = msgspec.json.encode({"record": text}).decode()
            await socket.send(encode_room(Awareness((Client(client_of(peer.name), counter, state),))))


async def cursors(peer: Newcomer) -> None:
    """Cursors, each with a higher counter."""
    async with in_room(peer, "cursors") as socket:
        replica = Replica([RoomMap.CURSORS], lambda: int.from_bytes(os.urandom(4)) >> 1)
        counter = 2_000_000_000
        while True:
            counter += 1
            body = CursorsBody(cursors={"vps": (EPOCH, counter)}, head=(EPOCH, 1))
            replica.put(RoomMap.CURSORS, peer.name, _record(peer, RoomMap.CURSORS, counter, body))
            for _, update in replica.take().updates:
                await socket.send(encode_room(Update(update)))


async def questions(peer: Newcomer) -> None:
    """What the whole document is the answer to."""
    async with in_room(peer, "state") as socket:
        while True:
            await socket.send(encode_room(SyncStep1(b"\0")))


async def deaf(peer: Newcomer) -> None:
    """A link that is opened, with all credit there is, and never read."""
    async with open_pipe(peer) as pipe:
        await _greeted(pipe)
        pipe.socket.transport.pause_reading()
        await asyncio.Event().wait()


async def sockets(peer: Newcomer) -> None:
    """Sockets that are opened and kept."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(300):
            await stack.enter_async_context(open_socket(peer, "state"))
        await asyncio.Event().wait()


async def clients(peer: Newcomer) -> None:
    """The same cursors, each written by another client: nothing of them merges."""
    async with in_room(peer, "cursors") as socket:
        counter = 2_000_000_000
        while True:
            counter += 1
            replica = Replica([RoomMap.CURSORS], lambda: int.from_bytes(os.urandom(4)) >> 1)
            body = CursorsBody(cursors={"vps": (EPOCH, counter)}, head=(EPOCH, 1))
            replica.put(RoomMap.CURSORS, peer.name, _record(peer, RoomMap.CURSORS, counter, body))
            for _, update in replica.take().updates:
                await socket.send(encode_room(Update(update)))


@asynccontextmanager
async def in_room(peer: Newcomer, room: str) -> AsyncIterator[ClientConnection]:
    """A socket to a room, whose frames somebody takes."""
    async with open_socket(peer, room) as socket, asyncio.TaskGroup() as tasks:
        tasks.create_task(_take(socket))
        yield socket


async def _take(socket: ClientConnection) -> None:
    while True:
        await socket.recv()


def _record(peer: Newcomer, room_map: RoomMap, counter: int, body: Body) -> str:
    return sign_record(
        peer.key.sign,
        mesh=peer.pin.mesh,
        room_map=room_map,
        key=peer.name,
        signer=peer.name,
        epoch=epoch_ordinal(EPOCH),
        counter=counter,
        body=body,
    )


async def visits(peer: Newcomer) -> None:
    """Links that are opened and closed."""
    while True:
        async with open_pipe(peer) as pipe:
            await pipe.greet()


SHA = BlobId("0" * 64)

FLOODS: dict[str, Flood] = {
    "long pages": pages(BATCH_ENTRIES_MAX, "x"),
    "short pages": pages(1, "x"),
    "large entries": pages(1, "x" * 250_000),
    "large pages": pages(30, "x" * 250_000),
    "pings": frames(Ping),
    "seen": frames(lambda n: Seen(NodeId("vps"), EPOCH, n)),
    "credits": frames(lambda _: Credit(1)),
    "haves": frames(_stocks),
    "wants": frames(
        lambda n: Want(NodeId("vps"), None, 0, Filter.MINE, n), lambda _: Credit(CREDIT_BYTES_MAX)
    ),
    "blob wants": frames(lambda n: BlobWant(SHA, n, 1)),
    "beats": beats,
    "cursors": cursors,
    "visits": visits,
    "questions": questions,
    "deaf": deaf,
    "sockets": sockets,
    "clients": clients,
}


@asynccontextmanager
async def flooded(peer: Newcomer, flood: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """While in here the gateway behind the peer's port is flooded."""
    plan = Plan(flood, peer.port, peer.pin, peer.name, peer.key.signer.private_bytes_raw())
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mesh.flooding"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan) + b"\n")
        process.stdin.flush()
        assert await asyncio.to_thread(process.stdout.readline) == STARTED
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.readline(), type=Plan)
    peer = Newcomer(plan.port, plan.pin, plan.name, SigningKey(plan.seed))
    sys.stdout.buffer.write(STARTED)
    sys.stdout.buffer.flush()
    asyncio.run(FLOODS[plan.flood](peer))


if __name__ == "__main__":
    main()
