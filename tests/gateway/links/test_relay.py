"""Two nodes that are never linked reach each other through a seed with copies, which cannot cheat them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.streams import HISTORY_MISSED, RELAY_TAMPERED
from gateway.links.limits import DISTRUST_MS, FLOOR_HOPELESS_LOOKS
from gateway.wire.codec import decode, encode
from gateway.wire.frames import Entries
from outbox.chain import Checkpoint, Entry, Excerpt, Stub
from outbox.ids import NodeId, Seq
from tests.gateway.links.conftest import EPOCH, Gateway, Mesh, Wire, until

A, B, SEED = NodeId("a"), NodeId("b"), NodeId("seed")


def accepted(mesh: Mesh, node: str, event: Any) -> Callable[[], bool]:
    return lambda: mesh.gateways[node].store.obligations(event)[0].accepted_at_ms is not None


def source(gateway: Gateway) -> str | None:
    """Over whose link a's outbox is read."""
    number = gateway.registry._sources._current.get(A)
    return next((link.peer for link in gateway.registry._links.values() if link.number == number), None)


async def test_nodes_that_never_meet_reach_each_other_through_a_seed(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    a, b, seed = (mesh.gateways[name] for name in ("a", "b", "seed"))
    async with mesh.linked("a", "seed"):
        sent = await a.send("ann", "bob", "hello")
        await until(lambda: seed.store.cursor(A) == a.store.head())
    copy = seed.store.copy(A)
    assert copy is not None
    assert (copy.first, copy.last, copy.hash) == (1, a.store.head().seq, a.store.head().hash)
    async with mesh.linked("b", "seed"):
        await until(lambda: b.store.cursor(A) == a.store.head())
        await until(lambda: seed.store.cursor(B) == b.store.head())
    assert b.store.ledger(sent.event_id)
    async with mesh.linked("a", "seed"):
        await until(accepted(mesh, "a", sent.event_id))
    assert a.store.cursor(B) == b.store.head()


async def test_what_is_said_while_both_are_linked_to_the_seed_is_pushed(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    async with mesh.linked("a", "seed"), mesh.linked("b", "seed"):
        for number in range(5):
            sent = await mesh.gateways["a"].send("ann", "bob", f"{number}")
            await until(accepted(mesh, "a", sent.event_id))
    assert mesh.gateways["seed"].store.incidents(open_only=True) == []


async def test_the_direct_link_is_preferred_and_lost_again_without_loss(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    a, b = mesh.gateways["a"], mesh.gateways["b"]
    async with mesh.linked("a", "seed"), mesh.linked("b", "seed"):
        first = await a.send("ann", "bob")
        await until(accepted(mesh, "a", first.event_id))
        assert source(b) == SEED
        async with mesh.linked("a", "b"):
            await until(lambda: source(b) == A)
            second = await a.send("ann", "bob")
            await until(accepted(mesh, "a", second.event_id))
        third = await a.send("ann", "bob")
        await until(accepted(mesh, "a", third.event_id))
    assert len(b.store.inbox("bob", done=True, limit=9)) == 3


async def test_a_reader_gets_only_its_own_bodies_from_a_copy(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    mesh.owners["cat"] = NodeId("c")
    a, b = mesh.gateways["a"], mesh.gateways["b"]
    a.see()
    bodies: list[object] = []
    async with mesh.linked("a", "seed"), mesh.linked("b", "seed") as (near, _):
        near.tap = lambda message: bodies.extend(_entries(message))
        await a.send("ann", "cat", "secret of cat")
        await a.send("ann", "bob", "for bob")
        await until(lambda: b.store.cursor(A) == a.store.head())
    kinds = {type(entry) for entry in bodies}
    assert kinds == {Entry, Stub}
    assert not any(b"secret of cat" in entry.body for entry in bodies if isinstance(entry, Entry))
    seed_copy = mesh.gateways["seed"].store.read_copy(A, _start(mesh), 99, 1 << 20)
    assert any(b"secret of cat" in entry.body for entry in seed_copy.entries)


def _start(mesh: Mesh) -> Any:
    head = mesh.gateways["a"].store.head()
    return replace(head, seq=Seq(0))


def _entries(message: bytes) -> list[Entry | Stub]:
    frame = decode(message)
    return list(frame.page.entries) if isinstance(frame, Entries) and frame.node == A else []


# --- a seed that lies


def _altered(frame: Entries) -> Excerpt:
    first, *rest = frame.page.entries
    body = first.body[:-1] + b"!" if isinstance(first, Entry) else first.body_hash
    return replace(frame.page, entries=(Entry(first.seq, first.header, body), *rest))


def _dropped(frame: Entries) -> Excerpt:
    entries = frame.page.entries[1:]
    moved = tuple(replace(entry, seq=Seq(entry.seq - 1)) for entry in entries)
    last = replace(frame.page.checkpoint, seq=Seq(frame.page.checkpoint.seq - 1))
    return replace(frame.page, entries=moved, checkpoint=last)


def _reordered(frame: Entries) -> Excerpt:
    entries = frame.page.entries
    swapped = (replace(entries[1], seq=entries[0].seq), replace(entries[0], seq=entries[1].seq))
    return replace(frame.page, entries=(*swapped, *entries[2:]))


def _withheld(frame: Entries) -> Excerpt:
    stubs = tuple(
        Stub(entry.seq, entry.header, sha256(entry.body).digest()) if isinstance(entry, Entry) else entry
        for entry in frame.page.entries
    )
    return replace(frame.page, entries=stubs)


def _forged(frame: Entries) -> Excerpt:
    return replace(frame.page, checkpoint=replace(frame.page.checkpoint, signature=b"\0" * 64))


def _skipped(frame: Entries) -> Excerpt:
    """The beginning is left out, all else is honest."""
    return replace(frame.page, entries=frame.page.entries[1:])


LIES = {
    "altered": _altered,
    "dropped": _dropped,
    "reordered": _reordered,
    "withheld": _withheld,
    "forged": _forged,
    "skipped": _skipped,
}


@asynccontextmanager
async def lying(mesh: Mesh, lie: Callable[[Entries], Excerpt]) -> AsyncIterator[tuple[Wire, Wire]]:
    """A link of b with a seed whose every page of a's outbox is changed on its way."""

    def change(message: bytes) -> bytes:
        frame = decode(message)
        if not isinstance(frame, Entries) or frame.node != A:
            return message
        return encode(Entries(A, lie(frame), frame.ask))

    async with mesh.linked("b", "seed") as (near, far):
        far.change = change
        yield near, far


@pytest.mark.parametrize("lie", LIES)
async def test_a_relay_that_lies_is_caught_named_and_gone_around(around_a_seed: Mesh, lie: str) -> None:
    mesh = around_a_seed
    a, b, seed = (mesh.gateways[name] for name in ("a", "b", "seed"))
    async with mesh.linked("a", "seed"):
        await a.send("ann", "bob", "one")
        sent = await a.send("ann", "bob", "two")
        await until(lambda: seed.store.cursor(A) == a.store.head())
    async with lying(mesh, LIES[lie]):
        await until(lambda: b.store.incident(RELAY_TAMPERED, SEED) is not None)
        assert b.store.cursor(A) is None, "nothing of it was believed"
        assert b.store.quarantined() == []
        await until(lambda: source(b) is None)
        assert b.registry.link(SEED) is not None, "the seed's own outbox is innocent"
        async with mesh.linked("a", "b"):
            await until(accepted(mesh, "a", sent.event_id))
    assert a.store.incidents(open_only=True) == []
    assert b.store.incident(RELAY_TAMPERED, A) is None


async def test_a_relay_that_was_caught_is_tried_again_later(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    a, b, seed = (mesh.gateways[name] for name in ("a", "b", "seed"))
    async with mesh.linked("a", "seed"):
        await a.send("ann", "bob", "one")
        await until(lambda: seed.store.cursor(A) == a.store.head())
    async with lying(mesh, _forged) as (_, far):
        await until(lambda: b.store.incident(RELAY_TAMPERED, SEED) is not None)
        far.change = lambda message: message
        b.registry._do(b.registry._sources.look(b.clock.mono_ms() + DISTRUST_MS + 1))
        await until(lambda: b.store.cursor(A) == a.store.head())


async def test_old_pages_played_again_change_nothing(around_a_seed: Mesh) -> None:
    mesh = around_a_seed
    a, b = mesh.gateways["a"], mesh.gateways["b"]
    kept: list[bytes] = []

    def replay(message: bytes) -> bytes:
        frame = decode(message)
        if not isinstance(frame, Entries) or frame.node != A:
            return message
        kept.append(message)
        return kept[0]

    async with mesh.linked("a", "seed"), mesh.linked("b", "seed") as (_, far):
        sent = await a.send("ann", "bob", "one")
        await until(accepted(mesh, "a", sent.event_id))
        far.change = replay
        await a.send("ann", "bob", "two")
        await a.send("ann", "bob", "three")
        await until(lambda: len(kept) >= 1)
        await asyncio.sleep(0)
    assert len({row.event_id for row in b.store.inbox("bob", done=True, limit=9)}) == len(
        b.store.inbox("bob", done=True, limit=9)
    )


async def test_a_copy_begins_where_it_was_switched_on(around_a_seed: Mesh) -> None:
    """Who needs what is older does not read there, and reads it from its writer."""
    mesh = around_a_seed
    a, b, seed = (mesh.gateways[name] for name in ("a", "b", "seed"))
    await a.send("ann", "bob", "one")
    seed.store.begin()
    seed.store.put_cursor(A, a.store.head())
    seed.store.commit()
    seed.registry._sources.moved(A, a.store.head(), 0)
    async with mesh.linked("a", "seed"):
        await a.send("ann", "bob", "two")
        await until(lambda: seed.store.cursor(A) == a.store.head())
        assert seed.store.copy(A).first == 2
        async with mesh.linked("b", "seed"):
            await until(lambda: b.store.cursor(SEED) is not None or seed.store.head().seq == 0)
            assert b.store.cursor(A) is None
            assert not b.engine._peers.is_behind(A)
            async with mesh.linked("a", "b"):
                await until(lambda: b.store.cursor(A) == a.store.head())


# --- a writer that has forgotten what a seed still has


@asynccontextmanager
async def forgetting() -> AsyncIterator[tuple[Mesh, Checkpoint]]:
    """b has read the first event of a, the seed all of them; a has forgotten those before its floor."""
    mesh = Mesh("a", "b", "seed")
    a, b, seed = (mesh.gateways[name] for name in ("a", "b", "seed"))
    async with mesh.running():
        await a.add("ann")
        await b.add("bob")
        async with mesh.linked("a", "b"):
            first = await a.send("ann", "bob", "one")
            await until(accepted(mesh, "a", first.event_id))
        async with mesh.linked("a", "seed"):
            for number in range(4):
                await a.send("ann", "bob", f"{number}")
            await until(lambda: seed.store.cursor(A) == a.store.head())
    a.store.begin()
    floor = a.store.move_floor(EPOCH, Seq(a.store.head().seq - 1))
    a.store.commit()
    async with mesh.running():  # as new processes: what the old one of a had in memory could still be read
        assert b.store.cursor(A).seq < floor.seq
        yield mesh, floor


def heard_of_a_floor(gateway: Gateway) -> Callable[[], bool]:
    """The writer itself has told of it."""
    return lambda: A in gateway.registry._sources._floors._floors


async def test_a_reader_fetches_from_a_seed_what_the_writer_has_forgotten() -> None:
    async with forgetting() as (mesh, floor):
        a, b = mesh.gateways["a"], mesh.gateways["b"]
        async with mesh.linked("a", "b"):
            await until(heard_of_a_floor(b))
            assert b.store.cursor(A).seq < floor.seq
            async with mesh.linked("b", "seed"):
                await until(lambda: b.store.cursor(A) == a.store.head())
        assert b.store.incident(HISTORY_MISSED, A) is None
        assert len(b.store.inbox("bob", done=True, limit=9)) == 5


async def test_a_reader_goes_on_at_the_floor_when_nobody_has_the_rest() -> None:
    async with forgetting() as (mesh, floor):
        a, b = mesh.gateways["a"], mesh.gateways["b"]
        async with mesh.linked("a", "b"):
            await until(heard_of_a_floor(b))
            for _ in range(FLOOR_HOPELESS_LOOKS):
                assert b.store.cursor(A).seq < floor.seq
                b.registry._do(b.registry._sources.look(b.clock.mono_ms()))
            await until(lambda: b.store.cursor(A) == a.store.head())
        assert b.store.incident(HISTORY_MISSED, A) is not None
