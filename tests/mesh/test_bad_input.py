"""Whatever an admitted node sends, it gets a typed goodbye, and the gateway goes on serving the others."""

import asyncio
import contextlib
import os
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from auth.messages import CHALLENGE_PATH, EXCHANGE_PATH, RENEW_PATH
from gateway.judging.witness import Witness
from gateway.links.limits import OFFERS_MAX
from gateway.wire.codec import encode
from gateway.wire.frames import VERSION, VERSIONS, Entries, Filter, Have, Hello, Ping, Seen, Stock, Want
from gateway.wire.limits import FRAME_BYTES_MAX, HAVE_STREAMS_MAX
from outbox.chain import Checkpoint, Entry, Head, Page, extend, genesis, sign_checkpoint
from outbox.envelope import Event, encode_header, header_of
from outbox.ids import AgentId, MeshId, NodeId, Seq, make_event_id
from outbox.readership import whole
from tests.mesh.acting import at_work, rest, talk
from tests.mesh.judging import faults
from tests.mesh.knocking import Newcomer, door_of
from tests.mesh.piping import EPOCH, Pipe, open_pipe, open_socket
from tests.mesh.processes import Node, until

VPS, LAB = NodeId("vps"), NodeId("lab")


@pytest.fixture
async def lab(pair: tuple[Node, Node]) -> Newcomer:
    """An admitted node without a gateway behind it."""
    door = await door_of(pair[0])
    newcomer = door.newcomer("lab")
    await newcomer.join(await door.invite("lab"))
    return newcomer


async def assert_well(pair: tuple[Node, Node], witness: Witness | None = None) -> None:
    """Both gateways run, talk with each other, and have met no bug of their own."""
    vps, mbp = pair
    seen = witness or Witness()
    async with at_work(seen, (mbp, "bob"), (vps, "ada")):
        await talk(vps, "ada", "bob", 3, seen)
        await rest(pair, 3)
    assert faults(pair, seen.account()) == []
    for node in pair:
        assert node.running
        for word in ("Traceback", "tick.failed", "input.failed", "Exception in ASGI"):
            assert word not in node.log() + node.tail(), node.log()[-3000:]


# --- the pipe: frames

Frames = Callable[[Pipe], list[object]]


def hello(pipe: Pipe, **other: object) -> Hello:
    fields = {"v": VERSION, "versions": VERSIONS, "node": LAB, "mesh": pipe.mesh, "time_ms": 0}
    return Hello(**{**fields, **other})  # type: ignore[arg-type]


OLD_HAVE = Have((Stock(LAB, EPOCH, 1, 0, bytes(32)),))


def _many_streams() -> list[Have]:
    frames = OFFERS_MAX // HAVE_STREAMS_MAX + 1
    return [
        Have(
            tuple(
                Stock(NodeId(f"s{frame}-{number}"), EPOCH, 1, 0, bytes(32))
                for number in range(HAVE_STREAMS_MAX)
            ),
            more=True,
        )
        for frame in range(frames)
    ]


FIRST: dict[str, tuple[Frames, str]] = {
    "nothing readable": (lambda _: [b"\xff" * 40], "bad_frame"),
    "empty": (lambda _: [b""], "bad_frame"),
    "text": (lambda _: ["hello?"], "bad_frame"),
    "a header that is longer than the frame": (lambda _: [struct.pack(">I", 2**31) + b"{}"], "bad_frame"),
    "random": (lambda _: [os.urandom(5000)], "bad_frame"),
    "deep JSON": (lambda _: [struct.pack(">I", 60_000) + b"[" * 60_000], "bad_frame"),
    "an unknown type": (lambda _: [struct.pack(">I", 12) + b'{"t":"what"}'], "bad_frame"),
    "no hello first": (lambda _: [Ping(1)], "bad_frame"),
    "another node": (lambda pipe: [hello(pipe, node=NodeId("mbp"))], "bad_frame"),
    "another mesh": (lambda pipe: [hello(pipe, mesh=MeshId("A" * 43))], "bad_frame"),
    "a version of the future": (lambda pipe: [hello(pipe, v=99, versions=(98, 99))], "version"),
    "hello twice": (lambda pipe: [hello(pipe), hello(pipe)], "bad_frame"),
    "want twice": (lambda pipe: [hello(pipe), *2 * [Want(VPS, None, 0, Filter.MINE)]], "bad_frame"),
    "want what is for others": (lambda pipe: [hello(pipe), Want(VPS, None, 0, Filter.ALL)], "forbidden"),
    "want of another outbox": (lambda pipe: [hello(pipe), Want(NodeId("mbp"), None, 0)], "bad_frame"),
    "an old number": (
        lambda pipe: [hello(pipe), Want(VPS, None, 0, Filter.MINE, 2), Want(VPS, None, 0, Filter.MINE, 1)],
        "bad_frame",
    ),
    "a frame of version 1": (lambda pipe: [hello(pipe), encode(OLD_HAVE, 1)], "bad_frame"),
    "more streams than there can be": (lambda pipe: [hello(pipe), *_many_streams()], "too_many_streams"),
    "a foreign epoch": (lambda pipe: [hello(pipe), Want(VPS, EPOCH, 1, Filter.MINE)], "foreign_epoch"),
}


async def test_frames_that_break_a_rule_get_a_reason(pair: tuple[Node, Node], lab: Newcomer) -> None:
    for name, (frames, code) in FIRST.items():
        async with open_pipe(lab) as pipe:
            with contextlib.suppress(ConnectionClosed):
                await pipe.send(*frames(pipe))  # type: ignore[arg-type]
            said, close = await pipe.farewell()
        assert said is not None, name
        assert (said.code, close) == (code, 1008), name
    await assert_well(pair)


async def test_cursors_that_cannot_be_get_a_reason(pair: tuple[Node, Node], lab: Newcomer) -> None:
    vps, _ = pair
    with closing(vps.journal()) as journal:
        epoch = journal.identity().epoch
    for after, code in ((10_000, "cursor_past_end"), (2**53 - 1, "invalid_cursor")):
        async with open_pipe(lab) as pipe:
            await pipe.send(hello(pipe), Want(VPS, epoch, after, Filter.MINE))
            said, _ = await pipe.farewell()
        assert said is not None
        assert said.code == code
    await assert_well(pair)


async def test_a_frame_above_the_limit_closes_the_socket(pair: tuple[Node, Node], lab: Newcomer) -> None:
    async with open_pipe(lab) as pipe:
        await pipe.greet()
        with contextlib.suppress(ConnectionClosed):
            await pipe.send(b"\0" * (FRAME_BYTES_MAX + 1))
        _, close = await pipe.farewell()
    assert close == 1009
    await assert_well(pair)


async def test_a_request_that_is_cut_short_is_no_bug_of_the_gateway(pair: tuple[Node, Node]) -> None:
    """Nobody reads an answer then; a stranger could fill the log with tracebacks."""
    vps, _ = pair
    port = (await door_of(vps)).port
    head = "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    for path in (CHALLENGE_PATH, EXCHANGE_PATH, RENEW_PATH):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await hang_up(writer, head.format(path, f"127.0.0.1:{port}"))
    for path in ("/v1/enqueue", "/v1/reply", "/v1/ack", "/v1/agents", "/v1/invites", "/v1/dead/prune"):
        _, writer = await asyncio.open_unix_connection(vps.home.socket)
        await hang_up(writer, head.format(path, "localhost"))
    await assert_well(pair)


async def hang_up(writer: asyncio.StreamWriter, half: str) -> None:
    writer.write(half.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()


# --- the pipe: pages


def page(lab: Newcomer, bodies: list[tuple[bytes, bytes]], start: Head | None = None) -> Page:
    """A page of lab's own outbox, chained and signed as it should be."""
    head = start or genesis(lab.pin.mesh, LAB, EPOCH)
    entries = tuple(
        Entry(Seq(head.seq + number), header, body) for number, (header, body) in enumerate(bodies, 1)
    )
    reached = extend(head, entries)
    return Page(EPOCH, entries, sign_checkpoint(lab.pin.mesh, LAB, reached, lab.key.sign))


def event(number: int, **fields: object) -> tuple[bytes, bytes]:
    """Header and body of a message to ada that agree with each other."""
    made = Event(
        event_id=make_event_id(1_800_000_000_000 + number, os.urandom(10)),
        kind="message",
        source_node_id=LAB,
        source_agent_id=AgentId("eve"),
        to_agent_id=AgentId("ada"),
        created_at="2026-11-28T00:00:00.000Z",
        payload=msgspec.Raw(b'{"text":"x"}'),
    )
    made = msgspec.structs.replace(made, **fields)
    body = msgspec.json.encode(made)
    return encode_header(header_of(made, (VPS,), len(body))), body


async def test_pages_that_do_not_follow_or_are_not_signed_end_the_link(
    pair: tuple[Node, Node], lab: Newcomer
) -> None:
    good = page(lab, [event(1)])
    check = good.checkpoint
    gap = page(lab, [event(2)], Head(EPOCH, Seq(7), check.hash))
    forged = Page(EPOCH, good.entries, Checkpoint(check.mesh, LAB, EPOCH, check.seq, check.hash, b"s" * 64))
    altered = Page(EPOCH, (Entry(Seq(1), good.entries[0].header, b"{}"),), check)
    cases = {
        "forged": (Entries(LAB, whole(forged)), "bad_checkpoint"),
        "altered": (Entries(LAB, whole(altered)), "stream_refused"),
        "gap": (Entries(LAB, whole(gap)), "stream_refused"),
        "of another node": (Entries(NodeId("mbp"), whole(_as_of(good, "mbp"))), "bad_frame"),
    }
    for name, (entries, code) in cases.items():
        async with open_pipe(lab) as pipe:
            await pipe.greet()
            await pipe.send(entries)
            said, _ = await pipe.farewell()
            assert said is not None, name
            assert said.code == code, name
    await assert_well(pair)


def _as_of(page_: Page, node: str) -> Page:
    check = page_.checkpoint
    return Page(
        page_.epoch,
        page_.entries,
        Checkpoint(check.mesh, NodeId(node), check.epoch, check.seq, check.hash, check.signature),
    )


NOTHING = make_event_id(1, b"0" * 10)

ODD_EVENTS: dict[str, tuple[bytes, bytes]] = {
    "no JSON": (b"{}", b"{}"),
    "empty": (b"", b""),
    "binary": (b"\xff\xfe", os.urandom(100)),
    "of another node": event(1, source_node_id=NodeId("mbp")),
    "of an agent of another": event(2, source_agent_id=AgentId("bob")),
    "header lies": (event(3)[0], event(4)[1]),
    "no such day": event(5, created_at="2026-02-31T00:00:00.000Z"),
    "before all time": event(6, created_at="0000-00-00T00:00:00.000Z"),
    "ack without corrId": event(7, kind="ack"),
    "ack of nothing": event(8, kind="ack", corr_id=make_event_id(1, b"0" * 10)),
    "ack with a broken payload": event(
        9, kind="ack", corr_id=make_event_id(1, b"0" * 10), payload=msgspec.Raw(b"[]")
    ),
    "reply to nothing": event(10, kind="reply", corr_id=make_event_id(2, b"1" * 10)),
    "a kind of the future": event(11, kind="hologram"),
    "priority 99": event(12, priority=99),
    "no agents": event(13, source_agent_id=None, to_agent_id=None),
    "last day of all": event(14, expires_at="9999-12-31T23:59:59.999Z"),
    "expired": event(15, expires_at="1970-01-01T00:00:00.000Z"),
    "dead letter of nothing": event(16, kind="dead_letter", corr_id=make_event_id(3, b"2" * 10)),
    "signal about nothing": event(
        17, kind="signal", payload=msgspec.Raw(b'{"signal":"status_request","ref":"x"}')
    ),
    "to nobody here": event(18, to_agent_id=AgentId("nobody")),
    "lone surrogate": event(19, payload=msgspec.Raw(b'{"text":"\\ud800"}')),
    "deep payload": event(20, payload=msgspec.Raw(b"[" * 20_000 + b"]" * 20_000)),
}


async def test_well_chained_nonsense_is_kept_aside_and_the_cursor_moves_on(
    pair: tuple[Node, Node], lab: Newcomer
) -> None:
    vps, _ = pair
    nonsense = page(lab, list(ODD_EVENTS.values()))
    async with open_pipe(lab) as pipe:
        await pipe.greet()
        await pipe.send(Entries(LAB, whole(nonsense)))
        seen = await pipe.next(Seen)
    assert isinstance(seen, Seen)
    assert seen.seq == len(ODD_EVENTS)
    with closing(vps.journal()) as journal:
        names = list(ODD_EVENTS)
        aside = {names[row.seq - 1] for row in journal.quarantined()}
        assert {"no JSON", "empty", "binary", "of another node", "header lies", "priority 99"} <= aside
        assert "of an agent of another" in aside
        assert "a kind of the future" not in aside
        assert journal.cursor(LAB) == nonsense.checkpoint.head
    vps.kill()
    vps.start()
    await vps.ready()
    assert vps.running, "a start reads what was stored"
    async with vps.client() as gateway:
        await gateway.agent("ada").inbox(done=True)
        for row in await gateway.agent("ada").inbox(done=True):
            await gateway.trace(row.event_id)


# --- rooms


GARBAGE: dict[str, bytes | str] = {
    "empty": b"",
    "text": "hello",
    "random": b"\x00\x02" + bytes(range(200)),
    "an unknown message": b"\x63\x01",
    "an unknown step": b"\x00\x09\x00",
    "truncated": b"\x00\x02\xff\xff\xff\xff\x0f",
    "2^28 clients": b"\x00\x02\x05\x80\x80\x80\x80\x01",
    "structs without end": b"\x00\x02\x0b\x01\xff\xff\xff\xff\x0f\x01\x00" + b"\x00" * 3,
}


@pytest.mark.parametrize("room", ["state", "cursors"])
async def test_garbage_in_a_room_closes_that_connection(
    pair: tuple[Node, Node], lab: Newcomer, room: str
) -> None:
    for name, garbage in GARBAGE.items():
        async with open_socket(lab, room) as socket:
            await socket.send(garbage)
            closed = await _closed(socket)
        assert closed in {1003, 1008, 1009}, name
    await assert_well(pair)


async def _closed(socket: ClientConnection) -> int:
    async with asyncio.timeout(60):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else 1006


# --- sockets that say nothing, or not enough


async def test_half_open_upgrades_keep_nobody_out(pair: tuple[Node, Node], lab: Newcomer) -> None:
    vps, _ = pair
    request = b"GET /ansible/pipe HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
    writers = []
    try:
        for number in range(100):
            _, writer = await asyncio.open_connection("127.0.0.1", vps.port)
            writers.append(writer)
            writer.write(request[: 10 + number % 40])
        await assert_well(pair)
        assert (await lab.renew(("pipe",))).status == 200
    finally:
        for writer in writers:
            await _let_go(writer)


async def _let_go(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def test_headers_without_end_are_cut_off(pair: tuple[Node, Node]) -> None:
    vps, _ = pair
    before = _resident(vps)
    for first in (
        b"POST /ansible/auth/exchange HTTP/1.1\r\n",
        b"GET /ansible/pipe HTTP/1.1\r\nUpgrade: websocket\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", vps.port)
        writer.write(first + b"Host: x\r\n")
        with contextlib.suppress(OSError):
            for number in range(2048):
                writer.write(b"X-%d: " % number + b"a" * 1024 + b"\r\n")
                await writer.drain()
            writer.write(b"\r\n")
            async with asyncio.timeout(60):
                answer = await reader.read(100)
            assert answer[9:10] in {b"4", b""}, answer
        await _let_go(writer)
    assert _resident(vps) - before < 20 * 1024 * 1024
    await assert_well(pair)


def _resident(node: Node) -> int:
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


async def test_a_peer_that_opens_a_link_and_reads_nothing(pair: tuple[Node, Node], lab: Newcomer) -> None:
    """It owes what fits into the window; the others are served, and memory stays bounded."""
    vps, mbp = pair
    async with open_pipe(lab) as pipe, vps.client() as gateway:
        await pipe.greet()
        pipe.socket.transport.pause_reading()
        before = _resident(vps)
        for _ in range(60):
            await gateway.agent("ada").send("bob", "x" * 200_000)

        async def arrived() -> bool:
            async with mbp.client() as other:
                return (await other.status()).received.get("queued", 0) >= 60

        await until(arrived, 60, "the other peer has everything")
        assert _resident(vps) - before < 100 * 1024 * 1024
