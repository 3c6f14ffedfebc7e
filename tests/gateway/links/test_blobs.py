"""Blobs over links: from where they were first or from a copy, to whom they are for, whole or not at all."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.streams import RELAY_TAMPERED
from gateway.harness.sim.blobdisk import SimDraft
from gateway.links import fetching
from gateway.links.errors import CreditOverrun
from gateway.links.limits import BLOB_WANT_BYTES, BLOB_WINDOW_BYTES_MAX
from gateway.wire.codec import decode, encode
from gateway.wire.frames import (
    BlobNone,
    BlobPiece,
    BlobRefusal,
    BlobWant,
    Bye,
    Credit,
    Filter,
    Frame,
    Have,
    Hello,
    Want,
)
from outbox.blobref import BlobId, BlobRef
from outbox.ids import NodeId
from outbox.records import TurnState
from tests.gateway.links.conftest import MESH, Mesh, Wire, until, wires

CONTENT = bytes(range(256)) * 1500
A, B, SEED = NodeId("a"), NodeId("b"), NodeId("seed")


def here(mesh: Mesh, node: str, ref: BlobRef) -> Callable[[], bool]:
    return lambda: mesh.gateways[node].store.blob(ref.sha256) is not None


def ended(mesh: Mesh, event: Any) -> str | None:
    """How bob's turn ended."""
    (row,) = mesh.gateways["b"].store.ledger(event.event_id)
    return row.error if row.state is TurnState.DONE else None


def changed(change: Callable[[BlobPiece], BlobPiece]) -> Callable[[bytes], bytes]:
    """What becomes of the blobs that one end sends."""

    def alter(message: bytes) -> bytes:
        frame = decode(message)
        return encode(change(frame)) if isinstance(frame, BlobPiece) else message

    return alter


def spoilt(piece: BlobPiece) -> BlobPiece:
    return replace(piece, data=bytes(len(piece.data)))


async def test_a_blob_comes_after_its_event(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    ref = await a.keep(CONTENT)
    async with pair.linked("a", "b"):
        await a.send_blob("ann", "bob", ref)
        await until(here(pair, "b", ref))
        assert await b.disk.read(ref.sha256, 0, 1 << 20) == CONTENT
        empty = await a.keep(b"")
        await a.send_blob("ann", "bob", empty)
        await until(here(pair, "b", empty))


async def test_what_was_sent_before_the_link_comes_with_it(pair: Mesh) -> None:
    a = pair.gateways["a"]
    refs = [await a.keep(CONTENT[place:]) for place in range(6)]
    for ref in refs:
        await a.send_blob("ann", "bob", ref)
    async with pair.linked("a", "b"):
        for ref in refs:
            await until(here(pair, "b", ref))


async def test_two_that_never_meet_exchange_one_through_a_seed(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    ref = await mesh.gateways["a"].keep(CONTENT)
    async with mesh.linked("a", "seed"):
        await mesh.gateways["a"].send_blob("ann", "bob", ref)
        await until(here(mesh, "seed", ref))
    async with mesh.linked("b", "seed"):
        await until(here(mesh, "b", ref))


async def test_a_seed_that_is_fetching_it_has_it_a_little_later(
    around_a_seed: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = around_a_seed
    monkeypatch.setattr(fetching, "BLOBS_LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("gateway.links.fetchplan.BLOB_AGAIN_MS", 50)
    ref = await mesh.gateways["a"].keep(CONTENT)
    gate = asyncio.Event()
    async with mesh.linked("b", "seed"), mesh.linked("a", "seed") as (near, _):
        say = near.send

        async def late(message: bytes) -> None:
            if isinstance(decode(message), BlobPiece):
                await gate.wait()
            await say(message)

        near.send = late  # type: ignore[method-assign]
        sent = await mesh.gateways["a"].send_blob("ann", "bob", ref)
        await until(lambda: bool(mesh.gateways["b"].store.ledger(sent.event_id)))
        await asyncio.sleep(0.2)
        assert ended(mesh, sent) is None
        gate.set()
        await until(here(mesh, "b", ref))


async def test_a_transfer_goes_on_where_the_link_broke(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    ref = await a.keep(CONTENT)
    pieces = 0
    async with pair.linked("a", "b") as (near, far):
        say = near.send

        async def three(message: bytes) -> None:
            nonlocal pieces
            if isinstance(decode(message), BlobPiece):
                pieces += 1
                if pieces > 3:
                    await asyncio.Event().wait()
            await say(message)

        near.send = three  # type: ignore[method-assign]
        await a.send_blob("ann", "bob", ref)
        await until(lambda: b.disk.partial_size(ref.sha256) > 0)
        await far.close(1000, "")
        await near.close(1000, "")
    came = b.disk.partial_size(ref.sha256)
    assert 0 < came < ref.bytes
    wants: list[Frame] = []
    async with pair.linked("a", "b") as (near, _):
        near.tap = lambda message: wants.append(decode(message))
        await until(here(pair, "b", ref))
    first = next(frame for frame in wants if isinstance(frame, BlobWant))
    assert first.offset >= came
    assert await b.disk.read(ref.sha256, 0, 1 << 20) == CONTENT


async def test_no_more_is_asked_for_than_a_slow_disk_has_taken(
    pair: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, write = pair.gateways["a"], SimDraft.write
    ref = await a.keep(bytes(6 << 20))
    asked = written = most = 0

    async def slow(draft: SimDraft, data: bytes) -> None:
        nonlocal written
        await asyncio.sleep(0.005)
        await write(draft, data)
        written += len(data)

    def hear(message: bytes) -> None:
        nonlocal asked, most
        frame = decode(message)
        asked += frame.bytes if isinstance(frame, BlobWant) else 0
        most = max(most, asked - written)

    monkeypatch.setattr(SimDraft, "write", slow)
    async with pair.linked("a", "b") as (near, _):
        near.tap = hear
        await a.send_blob("ann", "bob", ref)
        await until(here(pair, "b", ref))
    assert most <= BLOB_WINDOW_BYTES_MAX + BLOB_WANT_BYTES, "the window, and what is being written"


async def test_a_relay_that_brings_other_bytes_is_named_and_left(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    a, b = mesh.gateways["a"], mesh.gateways["b"]
    ref = await a.keep(CONTENT)
    async with mesh.linked("a", "seed"):
        sent = await a.send_blob("ann", "bob", ref)
        await until(here(mesh, "seed", ref))
    async with mesh.linked("seed", "b") as (near, _):
        near.change = changed(spoilt)
        await until(lambda: bool(b.store.incidents(open_only=True)))
        (incident,) = b.store.incidents(open_only=True)
        assert (incident.kind, incident.subject) == (RELAY_TAMPERED, SEED)
        assert b.store.blob(ref.sha256) is None
        assert b.disk.partial_size(ref.sha256) == 0
        async with mesh.linked("a", "b"):
            await until(here(mesh, "b", ref))
    assert ended(mesh, sent) is None


async def test_what_its_own_sender_spoils_fails_with_the_reason(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    ref = await a.keep(CONTENT)
    async with pair.linked("a", "b") as (near, _):
        near.change = changed(spoilt)
        sent = await a.send_blob("ann", "bob", ref)
        await until(lambda: bool(b.store.ledger(sent.event_id)) and ended(pair, sent) is not None)
    assert str(ended(pair, sent)).startswith("blob_wrong: a ")
    assert b.store.incidents(open_only=True) == []


async def test_what_its_sender_has_lost_fails_with_the_reason(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    ref = await a.keep(CONTENT)
    sent = await a.send_blob("ann", "bob", ref)
    a.store.begin()
    a.store.drop_blob(ref.sha256)
    a.store.commit()
    async with pair.linked("a", "b"):
        await until(lambda: bool(b.store.ledger(sent.event_id)) and ended(pair, sent) is not None)
    assert str(ended(pair, sent)).startswith("blob_gone: a ")
    assert b.store.ledger(sent.event_id)[0].delivery_count == 0


# --- a peer that is a test


async def greeted(wire: Wire, peer: NodeId = B) -> None:
    await wire.say(Hello(2, (1, 2), peer, MESH, 0), Have(()))
    await wire.hear(Have)


async def asked(mesh: Mesh, *frames: Frame, kind: type[Frame], peer: NodeId = B) -> Any:
    """What a answers to these frames of a peer."""
    near, far = wires()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(mesh.gateways["a"].registry.run_link(mesh.gateways["a"].link(peer, near)))
        await greeted(far, peer)
        await far.say(Credit(1 << 20), *frames)
        answer = await far.hear(kind)
        await far.close(1000, "")
        running.cancel()
    return answer


async def test_knowing_a_hash_is_not_enough(pair: Mesh) -> None:
    """What is not named for b, what nobody names and what is nowhere get one answer."""
    a = pair.gateways["a"]
    await a.add("here")
    elsewhere, unnamed = await a.keep(CONTENT), await a.keep(b"unnamed")
    await a.send_blob("ann", "here", elsewhere)
    for sha256 in (elsewhere.sha256, unnamed.sha256, BlobId("0" * 64)):
        answer = await asked(pair, BlobWant(sha256, 0, 10), kind=BlobNone)
        assert answer == BlobNone(sha256, BlobRefusal.FORBIDDEN)


async def test_a_seed_may_fetch_what_the_outbox_names_that_it_copies(around_a_seed: Mesh) -> None:
    """As does a collector that was admitted; a member that has not asked for all bodies does not."""
    a = around_a_seed.gateways["a"]
    await a.add("here")
    ref = await a.keep(CONTENT)
    await a.send_blob("ann", "here", ref)
    want, everything = BlobWant(ref.sha256, 100, 50), Want(A, None, 0, Filter.ALL, 1)
    answer = await asked(around_a_seed, everything, want, kind=BlobPiece, peer=SEED)
    assert answer == BlobPiece(ref.sha256, 100, len(CONTENT), CONTENT[100:150])
    assert await asked(around_a_seed, want, kind=BlobNone, peer=SEED)
    assert await asked(around_a_seed, want, kind=BlobNone, peer=B)
    around_a_seed.readers.add(B)
    a.see()
    assert await asked(around_a_seed, want, kind=BlobNone, peer=B)
    assert await asked(around_a_seed, everything, want, kind=BlobPiece, peer=B)


async def test_beyond_its_end_there_is_nothing(pair: Mesh) -> None:
    a = pair.gateways["a"]
    ref = await a.keep(b"short")
    await a.send_blob("ann", "bob", ref)
    answer = await asked(pair, BlobWant(ref.sha256, 3, 50), kind=BlobNone)
    assert answer == BlobNone(ref.sha256, BlobRefusal.SHORT)


async def test_more_than_the_window_ends_the_link(pair: Mesh) -> None:
    wants = [BlobWant(BlobId("0" * 64), 0, BLOB_WINDOW_BYTES_MAX) for _ in range(2)]
    bye = await asked(pair, *wants, kind=Bye)
    assert bye.code == CreditOverrun.code


async def test_bytes_that_nobody_asked_for_end_the_link(pair: Mesh) -> None:
    bye = await asked(pair, BlobPiece(BlobId("0" * 64), 0, 5, b"bytes"), kind=Bye)
    assert bye.code == CreditOverrun.code


async def test_a_message_overtakes_a_transfer(pair: Mesh) -> None:
    """With a peer that takes nothing but one frame at a time, a message waits for a piece or two, no more."""
    a = pair.gateways["a"]
    ref = await a.keep(bytes(1 << 20))
    await a.send_blob("ann", "bob", ref)
    near, far = wires()
    far.inbox = asyncio.Queue(1)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(a.registry.run_link(a.link("b", near)))
        await greeted(far)
        wants = [BlobWant(ref.sha256, place * (64 << 10), 64 << 10) for place in range(16)]
        await far.say(Credit(1 << 20), Want(A, None, 0, Filter.MINE, 1), *wants)
        await far.hear(BlobPiece)
        await a.send("ann", "bob", "overtaking")
        pieces, message = 0, b""
        async with asyncio.timeout(60):
            while b"overtaking" not in message:
                message = await far.receive()
                pieces += isinstance(decode(message), BlobPiece)
        far.inbox = asyncio.Queue(100)
        running.cancel()
    assert pieces <= 3
