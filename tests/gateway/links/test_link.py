"""One link, frame by frame: greeting, versions, credit, filters, wants that are late or forged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from gateway.engine.effects import StreamBroken
from gateway.links import credit
from gateway.links.limits import FRAMES_IN_A_ROW, REFUSED_BY_DISK_MS
from gateway.links.tempo import Tempo
from gateway.wire.codec import decode
from gateway.wire.frames import (
    Bye,
    Credit,
    Entries,
    Filter,
    Floor,
    Have,
    Hello,
    Ping,
    Pong,
    Seen,
    Stock,
    Want,
)
from outbox.chain import Entry, Excerpt, Head, Stub, extend, genesis, sign_checkpoint
from outbox.errors import StorageFull
from outbox.ids import NodeId, Seq
from outbox.rates import Rate
from tests.gateway.links.conftest import EPOCH, MESH, Gateway, Mesh, Wire, sign, until, wires

A, B = NodeId("a"), NodeId("b")


@asynccontextmanager
async def peer_of(gateway: Gateway, name: str = "b") -> AsyncIterator[Wire]:
    """The test is the peer; the gateway's link runs."""
    near, far = wires()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(gateway.registry.run_link(gateway.link(name, near)))
        try:
            yield far
        finally:
            running.cancel()


def page_of_b(after: Head, *bodies: bytes) -> Excerpt:
    entries = tuple(Entry(Seq(after.seq + place), b"{}", body) for place, body in enumerate(bodies, 1))
    checkpoint = sign_checkpoint(MESH, B, extend(after, entries), lambda text: sign("b", text))
    return Excerpt(EPOCH, entries, checkpoint)


async def greet(wire: Wire, *versions: int) -> Want:
    await wire.say(Hello(max(versions or (2,)), versions or (1, 2), B, MESH, 0))
    await wire.hear(Hello)
    return await wire.hear(Want)


async def test_two_gateways_read_each_other(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    sent = await a.send("ann", "bob")
    async with pair.linked("a", "b"):
        await until(lambda: a.store.obligations(sent.event_id)[0].accepted_at_ms is not None)
        again = await b.send("bob", "ann")
        await until(lambda: b.store.obligations(again.event_id)[0].accepted_at_ms is not None)
    assert b.store.cursor(A) == a.store.head()
    assert a.store.cursor(B) == b.store.head()


async def test_the_newest_version_that_both_speak_is_spoken(pair: Mesh) -> None:
    a = pair.gateways["a"]
    pair.readers.add(B)
    a.see()
    await a.send("ann", "bob")
    async with peer_of(a) as wire:
        await wire.say(Hello(1, (1,), B, MESH, 0))
        await wire.hear(Hello)
        wire.version = 1
        want = await wire.hear(Want)
        assert want == Want(B, None, 0)
        await wire.say(Want(A, None, 0), Ping(7))
        assert (await wire.hear(Pong)).at_ms == 7
        page = (await wire.hear(Entries)).page
        assert all(isinstance(entry, Entry) for entry in page.entries)
        await wire.say(Entries(B, page_of_b(genesis(MESH, B, EPOCH), b"no event")))
        assert (await wire.hear(Seen)).seq == 1


async def test_a_peer_that_cannot_be_given_less_than_all_is_given_nothing(pair: Mesh) -> None:
    a = pair.gateways["a"]
    await a.send("ann", "bob")
    async with peer_of(a) as wire:
        await wire.say(Hello(1, (1,), B, MESH, 0))
        said = await wire.hear(Bye)
        assert (said.code, "--reads-all" in said.hint) == ("version", True)
    down = a.registry.down(B)
    assert down is not None
    assert "--reads-all" in down.why, "our operator is told as well"


async def test_two_versions_away_there_is_a_goodbye_with_a_hint(pair: Mesh) -> None:
    async with peer_of(pair.gateways["a"]) as wire:
        await wire.say(Hello(4, (3, 4), B, MESH, 0))
        said = await wire.hear(Bye)
        assert said.code == "version"
        assert "update the older one" in said.hint


async def test_nothing_is_sent_without_credit_and_little_beyond_it(pair: Mesh) -> None:
    a = pair.gateways["a"]
    for _ in range(3):
        await a.send("ann", "bob", "x" * 1000)
    head = a.store.head()
    async with peer_of(a) as wire:
        await greet(wire)
        await wire.say(Want(A, None, 0, Filter.MINE, 1), Ping(1))
        await wire.hear(Pong)
        assert wire.inbox.empty(), "a writer that had credit would have served before it waits again"
        await wire.say(Credit(1))
        assert (await wire.hear(Entries)).page.checkpoint.seq == head.seq


async def test_a_peer_that_sends_without_credit_is_in_breach(
    pair: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credit, "LINK_WINDOW_BYTES", 100)
    monkeypatch.setattr(credit, "GRANT_AT_BYTES", 1)
    a = pair.gateways["a"]
    async with peer_of(a) as wire:
        await greet(wire)
        page = page_of_b(genesis(MESH, B, EPOCH), b"x" * 200)
        await wire.say(Entries(B, page), Entries(B, page))  # at once: nothing is handled between the two
        assert (await wire.hear(Bye)).code == "credit_overrun"


async def test_what_was_handled_is_granted_anew(pair: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credit, "LINK_WINDOW_BYTES", 100)
    monkeypatch.setattr(credit, "GRANT_AT_BYTES", 50)
    async with peer_of(pair.gateways["a"]) as wire:
        await greet(wire)
        at = genesis(MESH, B, EPOCH)
        for _ in range(5):
            page = page_of_b(at, b"x" * 98)
            at = page.checkpoint.head
            await wire.say(Entries(B, page))
            assert (await wire.hear(Credit)).bytes == 100
        assert pair.gateways["a"].store.cursor(B) == at


async def test_bodies_travel_to_whom_they_name(pair: Mesh) -> None:
    a = pair.gateways["a"]
    pair.owners["cat"] = NodeId("c")
    a.see()
    pair.readers.add(B)
    a.see()
    await a.send("ann", "cat")
    await a.send("ann", "bob")
    async with peer_of(a) as wire:
        await greet(wire)
        await wire.say(Credit(10_000), Want(A, None, 0, Filter.MINE, 1))
        page = (await wire.hear(Entries)).page
        assert [type(entry) for entry in page.entries] == [Stub, Entry]
        await wire.say(Want(A, None, 0, Filter.ALL, 2))
        frame = await wire.hear(Entries)
        assert frame.ask == 2
        assert [type(entry) for entry in frame.page.entries] == [Entry, Entry]
        await wire.say(Want(A, None, 0, Filter.NONE, 3))


async def test_a_member_gets_nothing_that_is_for_others(pair: Mesh) -> None:
    a = pair.gateways["a"]
    await a.send("ann", "bob")
    async with peer_of(a) as wire:
        await greet(wire)
        await wire.say(Credit(10_000), Want(A, None, 0, Filter.ALL, 1))
        bye = await wire.hear(Bye)
        assert bye.code == "forbidden"
        assert "gateway invite b --reads-all" in bye.hint


async def test_late_entries_are_dropped_and_forged_numbers_are_a_breach(pair: Mesh) -> None:
    a = pair.gateways["a"]
    page = page_of_b(genesis(MESH, B, EPOCH), b"no event")
    async with peer_of(a) as wire:
        want = await greet(wire)
        a.registry._sources.shun(a.registry.link(B).number, B, 10**15)
        a.registry._decide()
        assert (await wire.hear(Want)).filter is Filter.NONE
        await wire.say(Entries(B, page, want.ask), Ping(1))
        await wire.hear(Pong)
        assert a.store.cursor(B) is None
        await wire.say(Entries(B, page, 99))
        assert (await wire.hear(Bye)).code == "bad_frame"


async def test_what_was_not_offered_cannot_be_read(pair: Mesh) -> None:
    async with peer_of(pair.gateways["a"]) as wire:
        await greet(wire)
        await wire.say(Want(NodeId("c"), None, 0))
        assert (await wire.hear(Bye)).code == "bad_frame"


async def test_a_stream_that_is_read_elsewhere_is_still_told_of_as_it_grows(pair: Mesh) -> None:
    a = pair.gateways["a"]
    async with peer_of(a) as wire:
        await greet(wire)
        await a.send("ann", "bob")
        have = await wire.hear(Have, lambda frame: frame.streams[0].last == 1)
        assert have.streams[0] == Stock(A, EPOCH, 1, 1, a.store.head().hash)


async def test_who_leaves_a_stream_is_told_how_far_it_goes(pair: Mesh) -> None:
    """While it was read here its growth was not told: the old offer ends below the reader's place."""
    a = pair.gateways["a"]
    async with peer_of(a) as wire:
        await greet(wire)
        await wire.say(Credit(10_000), Want(A, None, 0, Filter.MINE, 1))
        await a.send("ann", "bob")
        await wire.hear(Entries)
        await wire.say(Want(A, None, 0, Filter.NONE, 2))
        assert (await wire.hear(Have)).streams == (Stock(A, EPOCH, 1, 1, a.store.head().hash),)


async def test_a_clock_is_measured_and_silence_is_found(pair: Mesh) -> None:
    a = pair.gateways["a"]
    async with peer_of(a) as wire:
        await greet(wire)
        ping = await wire.hear(Ping)
        await wire.say(Pong(ping.at_ms, a.clock.wall_ms() + 5_000))
        link = a.registry.link(B)
        await until(lambda: link.offset.ms is not None)
        assert 4_000 < link.offset.ms < 6_000


async def test_a_forged_page_of_the_peer_itself_ends_the_link(pair: Mesh) -> None:
    page = page_of_b(genesis(MESH, B, EPOCH), b"no event")
    forged = replace(page, checkpoint=replace(page.checkpoint, signature=b"\0" * 64))
    async with peer_of(pair.gateways["a"]) as wire:
        await greet(wire)
        await wire.say(Entries(B, forged))
        assert (await wire.hear(Bye)).code == "bad_checkpoint"


async def test_a_full_disk_pauses_a_stream_and_keeps_the_link(
    pair: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No link is closed and none is dialled anew while our disk is full; what was refused comes again."""
    a, b = pair.gateways["a"], pair.gateways["b"]
    commit = b.store.commit

    def full() -> None:
        raise StorageFull("no space left")

    async with pair.linked("a", "b") as (near, far):
        await until(lambda: b.registry.link(A) is not None)
        link = b.registry.link(A)
        monkeypatch.setattr(b.store, "commit", full)
        sent = await a.send("ann", "bob")
        await until(lambda: b.runtime.storage_full)
        await until(lambda: (link.number, A) in b.registry._sources._shunned)
        monkeypatch.setattr(b.store, "commit", commit)
        assert (near.closed, far.closed) == (None, None)
        b.registry._do(b.registry._sources.look(b.clock.mono_ms() + REFUSED_BY_DISK_MS))
        await until(lambda: a.store.delivery(sent.event_id, B).accepted_at_ms is not None)
        assert b.registry.link(A) is link


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("kind", [Entries, Floor])
@pytest.mark.parametrize("error", [StorageFull("no space left"), ValueError("a bug")])
async def test_what_follows_something_that_we_refused_is_no_hole_of_the_peer(
    pair: Mesh, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type, *, at_once: bool
) -> None:
    """A page, or the floor where a reader begins: nobody is blamed for it, and all of it comes again."""
    a = pair.gateways["a"]
    put_cursor = a.store.put_cursor

    def refuse(node: NodeId, head: Head, signature: bytes) -> None:
        if head.seq == 1:
            raise error
        put_cursor(node, head, signature)

    first = page_of_b(genesis(MESH, B, EPOCH), b"one")
    rest = page_of_b(first.checkpoint.head, b"two")

    def frames(ask: int) -> list[Entries | Floor]:
        at = first.checkpoint
        floor = Floor(B, ask, at.epoch, at.seq, at.hash, at.signature)
        return [floor if kind is Floor else Entries(B, first, ask), Entries(B, rest, ask)]

    with capture_logs():  # printing tracebacks would take seconds
        async with peer_of(a) as wire:
            want = await greet(wire)
            monkeypatch.setattr(a.store, "put_cursor", refuse)
            await wire.say(*frames(want.ask)[: 2 if at_once else 1])
            assert (await wire.hear(Want)).filter is Filter.NONE
            await wire.say(*frames(want.ask)[1:], Ping(1))
            await wire.hear(Pong)
            monkeypatch.setattr(a.store, "put_cursor", put_cursor)
            a.registry._do(a.registry._sources.look(a.clock.mono_ms() + REFUSED_BY_DISK_MS))
            again = await wire.hear(Want)
            assert (again.epoch, again.after) == (None, 0)
            await wire.say(*frames(again.ask))
            await until(lambda: a.store.cursor(B) == rest.checkpoint.head)
            assert wire.other.closed is None


async def test_a_page_that_waited_for_room_is_looked_at_again(
    pair: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it follows may have been refused meanwhile: then it is late, and no hole."""
    a = pair.gateways["a"]
    page = page_of_b(page_of_b(genesis(MESH, B, EPOCH), b"one").checkpoint.head, b"two")
    async with peer_of(a) as wire:
        want = await greet(wire)
        waits, there_is = asyncio.Event(), asyncio.Event()

        async def room_of(_: NodeId) -> None:
            waits.set()
            await there_is.wait()

        monkeypatch.setattr(a.runtime._intake, "room_of", room_of)
        await wire.say(Entries(B, page, want.ask), Ping(1))
        await waits.wait()
        a.registry.stream_broken(StreamBroken(B, StorageFull.code, "", None, a.registry.link(B).number))
        assert (await wire.hear(Want)).filter is Filter.NONE
        there_is.set()
        await wire.hear(Pong)
        await a.send("ann", "bob")  # a tick has passed
        await wire.say(Ping(2))
        await wire.hear(Pong, lambda pong: pong.at_ms == 2)
        assert wire.other.closed is None


async def test_a_peer_that_says_much_at_once_gives_others_their_turns(pair: Mesh) -> None:
    """Of pings that wait only the newest is answered: so many answers, so many turns had the writer."""
    a, pings, answered = pair.gateways["a"], 20 * FRAMES_IN_A_ROW, 0
    async with peer_of(a) as wire:
        await greet(wire)
        await wire.say(*(Ping(number) for number in range(1, pings + 1)))
        while (await wire.hear(Pong)).at_ms != pings:
            answered += 1
    assert answered >= 18


async def test_a_peer_that_says_something_too_often_is_read_more_slowly(pair: Mesh) -> None:
    """And nothing that it says is lost."""
    a = pair.gateways["a"]
    async with peer_of(a) as wire:
        await greet(wire)
        link = a.registry.link(B)
        assert link is not None
        link._tempo = Tempo({Ping: Rate(2, 10)})
        begun_ms = a.clock.mono_ms()
        await wire.say(Ping(1), Ping(2), Ping(3), Ping(4))
        for number in (2, 3, 4):
            await wire.hear(Pong, lambda pong, number=number: pong.at_ms == number)
        assert a.clock.mono_ms() - begun_ms >= 2 * 90


async def test_a_peer_that_lost_everything_is_sent_everything_again(pair: Mesh) -> None:
    """It asks from the beginning, whatever it had confirmed before."""
    a, b = pair.gateways["a"], pair.gateways["b"]
    await a.send("ann", "bob", "one")
    async with pair.linked("a", "b"):
        await until(lambda: b.store.cursor(A) == a.store.head())
    for _ in range(2):
        async with peer_of(a) as wire:
            await greet(wire)
            await wire.say(Credit(10_000), Want(A, None, 0, Filter.MINE, 1))
            page = (await wire.hear(Entries)).page
            assert page.entries[0].seq == 1
            assert page.checkpoint.head == a.store.head()


async def test_what_was_written_while_nobody_was_linked_comes_without_new_traffic(pair: Mesh) -> None:
    a, b = pair.gateways["a"], pair.gateways["b"]
    for number in range(300):
        await a.send("ann", "bob", f"{number}")
    head = a.store.head()
    async with pair.linked("a", "b"):
        await until(lambda: b.store.cursor(A) == head)
    assert [row.seq for row in b.store.inbox("bob", done=True, limit=1_000)] == list(range(1, 301))


async def test_only_what_is_committed_is_shown(pair: Mesh) -> None:
    """A reader never sees a later entry before an earlier one, nor one whose commit failed."""
    a = pair.gateways["a"]
    seen: list[int] = []
    async with pair.linked("a", "b") as (_, far):
        far.tap = lambda message: seen.extend(_shown(message, a))
        await asyncio.gather(*(a.send("ann", "bob", f"{number}") for number in range(50)))
        await until(lambda: bool(seen) and seen[-1] == a.store.head().seq)
    assert seen == list(range(1, len(seen) + 1))


def _shown(message: bytes, writer: Gateway) -> list[int]:
    frame = decode(message)
    if not isinstance(frame, Entries) or frame.node != A:
        return []
    assert frame.page.checkpoint.seq <= writer.store.head().seq, "nothing is shown before its commit"
    return [entry.seq for entry in frame.page.entries]
