import asyncio
import itertools

import pytest
from pycrdt import Doc, Map, Provider
from pycrdt.websocket import YRoom

from stateroom import varints
from stateroom.bodies import RoomMap
from stateroom.exchange import (
    Awareness,
    QueryAwareness,
    SyncStep1,
    SyncStep2,
    Update,
    decode,
    encode,
)
from stateroom.limits import CONNECTIONS_PER_PEER_MAX
from stateroom.outflow import REPLACED, SLOW
from stateroom.pace import Pace
from stateroom.preflight import clocks
from stateroom.room import Room
from stateroom.store import RoomStore
from tests.stateroom.updates import circle, entry, hole, update, written

SHAPES = {
    "line": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "mesh": list(itertools.combinations(range(5), 2)),
}
NODES = ("n0", "n1", "n2", "n3", "n4")


async def rooms_of(bench, count: int = 5) -> list[Room]:
    return [await bench.room(f"n{number}") for number in range(count)]


def found(bench, room: Room, nodes=NODES) -> None:
    bench.found(room)
    for node in nodes:
        room.put(RoomMap.ADMISSIONS, node, bench.mesh.admission(node))


def equal(bench, *names: str) -> bool:
    return len({bench.indexes[name].digest() for name in names or bench.indexes}) == 1


@pytest.mark.parametrize("shape", SHAPES)
async def test_any_connected_shape_converges_without_an_echo_storm(bench, wait_until, shape: str) -> None:
    rooms = await rooms_of(bench)
    found(bench, rooms[0])
    for one, two in SHAPES[shape]:
        bench.join(rooms[one], rooms[two], f"{one}-{two}")
    for number, room in enumerate(rooms):
        for counter in range(1, 20):
            room.put(RoomMap.NODES, f"n{number}", bench.mesh.node(f"n{number}", counter=counter))
    await wait_until(
        lambda: (
            equal(bench)
            and all(
                (record := index.record(RoomMap.NODES, node)) and record.counter == 19
                for index in bench.indexes.values()
                for node in NODES
            )
        )
    )
    await asyncio.gather(*(room.settled() for room in rooms))
    quiet = [room.counts.copy() for room in rooms]
    assert all(not any(key != "put_back" for key in +counts) for counts in quiet)
    assert bench.closed == {}


async def test_a_partition_heals_without_new_traffic(bench, wait_until) -> None:
    one, two = await rooms_of(bench, 2)
    found(bench, one)
    wire = bench.join(one, two)
    await wait_until(lambda: equal(bench) and len(bench.indexes["n1"].view({}).nodes) == 6)
    wire.cut()
    await wait_until(lambda: len(bench.closed) == 2)
    one.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    two.put(RoomMap.NODES, "n1", bench.mesh.node("n1"))
    await asyncio.gather(one.settled(), two.settled())
    assert not equal(bench)
    bench.join(one, two, "again")
    await wait_until(lambda: equal(bench))
    assert len(bench.indexes["n0"].records(RoomMap.NODES)) == 2


async def test_a_restart_from_the_store_needs_no_peer_and_writes_under_a_new_id(
    bench, mesh, wait_until
) -> None:
    room = await bench.room("n0")
    found(bench, room)
    room.put(RoomMap.NODES, "n0", mesh.node("n0"))
    await room.settled()
    bench.runs["n0"].cancel()
    await wait_until(bench.runs["n0"].done)
    digest, client_id = bench.indexes["n0"].digest(), room.client_id
    bench.stores["n0"].close()
    again = await bench.room("n0")
    assert bench.indexes["n0"].digest() == digest
    assert again.client_id != client_id
    assert bench.changes["n0"] >= 1


async def test_what_is_pending_at_the_stop_is_stored(bench, wait_until, mesh) -> None:
    room = await bench.room("n0", pace=Pace(window_s=30))
    found(bench, room)
    await asyncio.sleep(0)
    bench.runs["n0"].cancel()
    await wait_until(bench.runs["n0"].done)
    assert len(bench.stores["n0"].load("state")) == 1
    assert (await room.serve(None, None, peer="late")).code == 1001


async def test_of_one_peer_the_newest_connections_stay(bench, wait_until) -> None:
    """However often it comes; and others keep theirs."""
    room = await bench.room("n0")
    bench.attach(room, "other")
    await wait_until(lambda: room.peers == ["other"])
    wires = [bench.attach(room, "eager") for _ in range(CONNECTIONS_PER_PEER_MAX + 3)]
    await wait_until(lambda: sum(wire.back.broken.is_set() for wire in wires) == 3)
    assert all(wire.back.broken.is_set() for wire in wires[:3]), "the oldest"
    assert bench.closed["eager"] == REPLACED
    assert room.peers == CONNECTIONS_PER_PEER_MAX * ["eager"] + ["other"]


async def test_abrupt_disconnects_under_load_harm_nobody_else(bench, wait_until) -> None:
    hub, one, two = await rooms_of(bench, 3)
    found(bench, hub)
    bench.join(one, hub, "one")
    bench.join(two, hub, "two")
    for counter in range(1, 201):
        one.put(RoomMap.NODES, "n1", bench.mesh.node("n1", counter=counter))
        if counter % 10 == 0:
            victim = bench.attach(hub, f"victim{counter}", size=1)
            await victim.there.send(encode(SyncStep1(b"\x00")))
            await asyncio.sleep(0)
            victim.cut()
    await wait_until(lambda: equal(bench) and bench.indexes["n2"].record(RoomMap.NODES, "n1").counter == 200)
    await wait_until(lambda: len(bench.closed) == 20)
    assert sorted(hub.peers) == ["one:accepted", "two:accepted"]


async def test_a_slow_reader_is_bounded_closed_and_can_come_back(bench, wait_until) -> None:
    pace = Pace(window_s=0.001, tick_s=0.02, send_queue_bytes=20_000)
    hub = await bench.room("n0", pace=pace)
    other = await bench.room("n1")
    found(bench, hub)
    bench.join(other, hub, "fast")
    slow = bench.attach(hub, "slow", size=4)
    await slow.there.send(encode(SyncStep1(b"\x00")))
    counters = itertools.count(1)

    def overwhelmed() -> bool:
        other.put(RoomMap.NODES, "n1", bench.mesh.node("n1", counter=next(counters)))
        return "slow" in bench.closed

    async def sip() -> None:
        while True:
            await slow.back.recv()
            await asyncio.sleep(0.02)

    sipping = bench.start(sip())
    await wait_until(overwhelmed)
    sipping.cancel()
    assert bench.closed["slow"] == SLOW
    await wait_until(lambda: equal(bench, "n0", "n1"))
    assert hub.peers == ["fast:accepted"]
    back = await bench.room("n2")
    bench.join(back, hub, "back")
    await wait_until(lambda: equal(bench, "n0", "n1", "n2"))


async def test_a_stalled_reader_is_closed_with_a_reason(bench, wait_until) -> None:
    room = await bench.room("n0", pace=Pace(window_s=0.001, send_timeout_s=0.05))
    bench.attach(room, "stalled", size=1)
    await wait_until(lambda: "stalled" in bench.closed)
    assert bench.closed["stalled"] == SLOW
    assert SLOW.code == 1013
    assert room.counts[SLOW.reason] == 1


async def test_a_late_joiner_gets_presence_and_relays_pass_it_on(bench, wait_until) -> None:
    one, two, three = await rooms_of(bench, 3)
    found(bench, one)
    bench.join(one, two, "1-2")
    await wait_until(lambda: equal(bench, "n0", "n1"))
    one.beat(bench.mesh.heartbeat("n0", 5))
    await wait_until(lambda: "n0" in bench.presences["n1"].seen())
    bench.join(two, three, "2-3")
    await wait_until(lambda: equal(bench))
    bench.now += 1000
    one.beat(bench.mesh.heartbeat("n0", 6))
    await wait_until(lambda: "n0" in bench.presences["n2"].seen())
    bench.now += 60_000
    await wait_until(lambda: not bench.presences["n2"].online())
    view = bench.indexes["n2"].view(bench.presences["n2"].seen())
    assert not view.online("n0")


async def test_a_joiner_is_sent_the_snapshot_at_once(bench) -> None:
    room = await bench.room("n0")
    bench.found(room)
    room.beat(bench.mesh.heartbeat("seed", 5))
    viewer = bench.attach(room, "viewer", read_only=True)
    first = decode(await viewer.back.recv())
    assert isinstance(first, Awareness)
    assert bench.mesh.heartbeat("seed", 5) in first.entries[0].state
    await viewer.there.send(encode(QueryAwareness()))
    assert decode(await viewer.back.recv()) == first


async def test_silence_is_broken_for_clients_that_take_it_for_death(bench, wait_until) -> None:
    room = await bench.room("n0", pace=Pace(tick_s=0.005))
    raw = bench.attach(room)
    for _ in range(2):
        await raw.back.recv()
    bench.now += 15_000
    assert decode(await raw.back.recv()) == Awareness(())
    bench.now += 60_000
    kinds = {type(decode(await raw.back.recv())) for _ in range(2)}
    assert kinds == {Awareness, SyncStep1}


async def test_a_read_only_peer_reads_and_changes_nothing(bench, wait_until) -> None:
    room = await bench.room("n0")
    found(bench, room)
    await room.settled()
    digest = bench.indexes["n0"].digest()
    viewer = bench.attach(room, "viewer", read_only=True)
    doc = Doc()
    doc.get("nodes", type=Map)["n1"] = bench.mesh.node("n1")
    await viewer.there.send(encode(Update(doc.get_update())))
    await viewer.there.send(encode(SyncStep2(doc.get_update())))
    await viewer.there.send(encode(SyncStep1(b"\x00")))
    await viewer.back.recv()
    answer = decode(await viewer.back.recv())
    assert isinstance(answer, SyncStep2)
    doc.apply_update(answer.update)
    assert len(doc.get("admissions", type=Map)) == 6
    assert room.counts["read_only"] == 2
    assert bench.indexes["n0"].digest() == digest


def nested(depth: int) -> bytes:
    root = b"\x01" + varints.chunk(b"nodes") + varints.chunk(b"a")
    return b"\x01\x01\x07\x00\x28" + root + b"\x01" + b"\x75\x01" * depth + b"\x77\x00\x00"


HOSTILE = {
    "nested": encode(Update(nested(26_200))),
    "nested deeper": encode(SyncStep2(nested(100_000))),
    "clients": encode(Update(varints.uint(2**28) + b"\x00")),
    "structs": encode(Update(b"\x01" + varints.uint(2**31) + b"\x07\x00\x00")),
    "gc": encode(Update(b"\x01\x01\x07\x00\x00" + varints.uint(2**40) + b"\x00")),
    "deleted": encode(Update(b"\x01\x01\x07\x00\x21\x01\x05nodes\x01a" + varints.uint(2**45) + b"\x00")),
    "truncated": encode(Update(b"\x01\x01\x07\x00\x28\x01")),
    "trailing": encode(Update(b"\x00\x00\x00")),
    "empty update": encode(Update(b"")),
    "empty frame": b"",
    "ones": b"\x01" * 100,
    "state vector": encode(SyncStep1(varints.uint(2**28))),
    "unknown type": b"\x07\x01",
    "frame with tail": encode(QueryAwareness()) + b"\x00",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_frame_closes_that_connection_only_and_leaves_nothing(
    bench, wait_until, name: str
) -> None:
    room = await bench.room("n0")
    found(bench, room)
    good = bench.attach(room, "good")
    bad = bench.attach(room, "bad")
    await room.settled()
    before = len(bench.stores["n0"].load("state"))
    await bad.there.send(HOSTILE[name])
    await wait_until(lambda: "bad" in bench.closed)
    assert bench.closed["bad"].code == 1008
    assert room.counts.total() >= 1
    await good.there.send(encode(SyncStep1(b"\x00")))
    while not isinstance(decode(await good.back.recv()), SyncStep2):
        pass
    assert room.peers == ["good"]
    assert len(bench.stores["n0"].load("state")) == before


async def test_a_poisoned_store_is_quarantined_and_the_room_starts(tmp_path, mesh, bench) -> None:
    store = RoomStore(tmp_path / "n0.db")
    store.append("state", nested(26_200))
    store.append("state", b"\x01\x01\x07\x00\x00\x05\x00")
    doc = Doc()
    doc.get("admissions", type=Map)["seed"] = mesh.founder()
    store.append("state", doc.get_update())
    store.close()
    room = await bench.room("n0")
    assert room.counts["quarantined"] == 2
    assert "seed" in bench.indexes["n0"].view({}).nodes
    assert [reason for reason, _ in bench.stores["n0"].quarantined("state")] == ["value_not_string", "gc"]


@pytest.mark.parametrize("junk", ["", "unsigned", None])
async def test_an_overwritten_record_stays_visible_and_is_put_back(
    bench, wait_until, junk: str | None
) -> None:
    owner, other = await rooms_of(bench, 2)
    found(bench, owner)
    bench.join(owner, other)
    owner.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    await wait_until(lambda: equal(bench) and bench.indexes["n1"].record(RoomMap.NODES, "n0") is not None)
    attacker = Doc(client_id=2**32 - 1)
    attacker.apply_update(other._replica.encode())
    nodes = attacker.get("nodes", type=Map)
    if junk is None:
        del nodes["n0"]
    else:
        nodes["n0"] = junk
    raw = bench.attach(other, "attacker")
    await raw.there.send(encode(Update(attacker.get_update())))
    await wait_until(lambda: owner.counts["put_back"] + other.counts["put_back"] > 0)
    text = bench.mesh.node("n0")
    await wait_until(lambda: {room._replica.get("nodes", "n0") for room in (owner, other)} == {text})
    assert bench.indexes["n1"].record(RoomMap.NODES, "n0").text == text


async def test_another_node_puts_back_what_the_owner_cannot(bench, wait_until) -> None:
    one, two = await rooms_of(bench, 2)
    found(bench, one)
    one.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    wire = bench.join(one, two)
    await wait_until(lambda: equal(bench) and bench.indexes["n1"].record(RoomMap.NODES, "n0") is not None)
    wire.cut()
    attacker = Doc(client_id=2**32 - 1)
    attacker.apply_update(two._replica.encode())
    attacker.get("nodes", type=Map)["n0"] = "gone"
    raw = bench.attach(two, "attacker")
    await raw.there.send(encode(Update(attacker.get_update())))
    await wait_until(lambda: two.counts["put_back"] == 1)
    assert two._replica.get("nodes", "n0") == bench.mesh.node("n0")


async def test_a_forged_client_id_costs_us_our_id_and_nothing_else(bench, wait_until) -> None:
    victim, other = await rooms_of(bench, 2)
    found(bench, victim)
    bench.join(victim, other)
    await wait_until(lambda: equal(bench) and len(bench.indexes["n1"].view({}).nodes) == 6)
    old_id = victim.client_id
    forger = Doc(client_id=old_id)
    forger.apply_update(other._replica.encode())
    forger.get("nodes", type=Map)["evil"] = "x"
    raw = bench.attach(other, "attacker")
    await raw.there.send(encode(Update(forger.get_update())))
    await wait_until(lambda: victim.counts["client_id_forged"] == 1)
    assert victim.client_id != old_id
    victim.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    await wait_until(lambda: bench.indexes["n1"].record(RoomMap.NODES, "n0") is not None)
    await wait_until(lambda: equal(bench))


async def test_equal_state_vectors_with_different_content_are_seen_and_repaired(bench, wait_until) -> None:
    """The attacker's struct reaches the other first; then the victim writes the same clock."""
    victim, other = await rooms_of(bench, 2)
    found(bench, victim)
    wire = bench.join(victim, other)
    await wait_until(lambda: equal(bench) and len(bench.indexes["n1"].view({}).nodes) == 6)
    wire.cut()
    await wait_until(lambda: len(bench.closed) == 2)
    forger = Doc(client_id=victim.client_id)
    forger.apply_update(other._replica.encode())
    forger.get("nodes", type=Map)["evil"] = "x"
    raw = bench.attach(other, "attacker")
    await raw.there.send(encode(Update(forger.get_update())))
    await wait_until(lambda: other._replica.get("nodes", "evil") == "x")
    victim.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    bench.join(victim, other, "again")
    await wait_until(lambda: victim._replica.state() == other._replica.state())
    assert not equal(bench)
    victim.renew()
    await wait_until(lambda: equal(bench))
    assert bench.indexes["n1"].record(RoomMap.NODES, "n0") is not None


async def test_what_builds_on_what_is_not_here_is_not_kept_and_comes_when_it_is_asked_for(
    bench, wait_until
) -> None:
    room = await bench.room("n0", pace=Pace(tick_s=0.005, resync_s=0.01))
    raw = bench.attach(room, "raw")
    doc = Doc()
    nodes = doc.get("nodes", type=Map)
    nodes["first"] = "x"
    state = doc.get_state()
    for number in range(20):
        nodes["late"] = str(number) * 1000
        await raw.there.send(encode(Update(doc.get_update(state))))
    await wait_until(lambda: room.counts["gap"] == 20)
    assert len(room._replica.encode()) < 100
    await wait_until(lambda: asked(raw) is not None)
    await raw.there.send(encode(SyncStep2(doc.get_update())))
    await wait_until(lambda: room._replica.get("nodes", "late") == "19" * 1000)
    assert "raw" not in bench.closed


def asked(raw) -> SyncStep1 | None:
    """What the room has asked, if it did once more."""
    while not raw.back.queue.empty():
        message = decode(raw.back.queue.get_nowait())
        if isinstance(message, SyncStep1):
            return message
    return None


async def test_a_long_update_is_looked_at_beside_the_loop(bench, wait_until) -> None:
    """One at a time, and what is wrong with it ends its sender as ever."""
    room = await bench.room("n0")
    liars = [bench.attach(room, f"liar{number}") for number in range(4)]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.ensure_future(count())
    for liar in liars:
        await liar.there.send(encode(Update(update(written(7, 0, *[hole(1)] * 300_000)) + b"trailing")))
    await wait_until(lambda: len(bench.closed) == len(liars))
    counting.cancel()
    assert {closed.reason for closed in bench.closed.values()} == {"invalid_update: trailing_bytes"}
    assert turns > 100
    good = bench.attach(room, "good")
    await good.there.send(
        encode(Update(update(*(written(n, 0, entry(f"k{n}", "x" * 1000)) for n in range(1, 99)))))
    )
    await wait_until(lambda: room._replica.get("nodes", "k98") == "x" * 1000)


async def test_what_waits_for_itself_ends_its_sender(bench, wait_until) -> None:
    room = await bench.room("n0")
    bench.found(room)
    raw = bench.attach(room, "liar")
    await raw.there.send(encode(Update(circle("x"))))
    await wait_until(lambda: "liar" in bench.closed)
    assert bench.closed["liar"].reason == "invalid_update: circle"
    assert bench.indexes["n0"].view({}).nodes


async def test_rooms_with_very_many_starts_behind_them_are_in_step(bench, wait_until) -> None:
    """Each start writes under a client id of its own, which stays in every state vector."""
    one, two = await rooms_of(bench, 2)
    found(bench, one)
    starts = (written(2**30 + number, 0, entry(f"k{number}", "x")) for number in range(50_000))
    one._replica.apply(update(*starts), object())
    one.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
    assert len(one._replica.state()) > 256 * 1024
    bench.join(one, two, "first")
    await wait_until(lambda: equal(bench, "n0", "n1"))
    two.put(RoomMap.NODES, "n1", bench.mesh.node("n1"))
    await wait_until(lambda: bench.indexes["n0"].record(RoomMap.NODES, "n1") is not None)
    three = await bench.room("n2")
    bench.join(two, three, "second")
    await wait_until(lambda: equal(bench))
    assert bench.closed == {}


async def test_a_full_room_refuses_more(bench, wait_until, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.archive.ROOM_BYTES_MAX", 1000)
    room = await bench.room("n0")
    doc = Doc()
    doc.get("nodes", type=Map)["a"] = "x" * 2000
    raw = bench.attach(room, "big")
    await raw.there.send(encode(Update(doc.get_update())))
    await wait_until(lambda: "big" in bench.closed)
    assert bench.closed["big"].reason == "room_full"
    assert room.counts["room_full"] >= 1


async def test_a_failed_write_is_counted_and_made_good(bench, wait_until) -> None:
    room = await bench.room("n0")
    db = bench.stores["n0"]._db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    found(bench, room)
    for counter in range(1, 8):
        room.put(RoomMap.NODES, "n0", bench.mesh.node("n0", counter=counter))
        await room.settled()
    await wait_until(lambda: room.counts["store_failed"] > 0)
    db.execute("PRAGMA max_page_count = 100000")
    room.put(RoomMap.NODES, "n1", bench.mesh.node("n1"))

    def replayed() -> dict[str, str]:
        doc = Doc()
        for stored in bench.stores["n0"].load("state"):
            doc.apply_update(stored.payload)
        return doc.get("nodes", type=Map).to_py()

    expected = {"n0": bench.mesh.node("n0", counter=7), "n1": bench.mesh.node("n1")}
    await wait_until(lambda: replayed() == expected)


async def test_a_joiner_of_a_large_room_stays_responsive(bench, wait_until) -> None:
    one, two = await rooms_of(bench, 2)
    found(bench, one)
    for number in range(600):
        one.put(RoomMap.AGENTS, f"a{number}", bench.mesh.agent(f"a{number}", "n0"))
    await wait_until(lambda: len(bench.indexes["n0"].records(RoomMap.AGENTS)) == 600)
    await one.settled()
    bench.join(one, two)
    grown: list[int] = []
    await wait_until(
        lambda: grown.append(len(bench.indexes["n1"].records(RoomMap.AGENTS))) or grown[-1] == 600
    )
    assert any(0 < size < 600 for size in grown)
    assert bench.indexes["n1"].rejects["unknown_signer"] < 10  # admissions were read before the agents
    assert equal(bench)


async def test_a_burst_without_a_pause_loses_nothing_and_is_merged(bench, wait_until) -> None:
    one, two = await rooms_of(bench, 2)
    wire = bench.join(one, two)
    await wait_until(lambda: wire.there.queue.empty() and wire.back.queue.empty())
    for number in range(10_000):
        one.put(RoomMap.NODES, f"k{number}", "x")
    await wait_until(lambda: two._replica.get("nodes", "k9999") == "x")
    assert clocks(two._replica.state())[one.client_id] == 10_000
    assert len(bench.stores["n1"].load("state")) < 50


async def test_a_long_log_is_folded_into_a_snapshot_while_the_room_lives(
    bench, wait_until, monkeypatch
) -> None:
    monkeypatch.setattr("stateroom.store.LOG_ROWS_MAX", 5)
    room = await bench.room("n0")
    bench.found(room)
    for counter in range(1, 30):
        room.put(RoomMap.NODES, "seed", bench.mesh.node("seed", counter=counter))
        await room.settled()
    pieces = bench.stores["n0"].load("state")
    assert pieces[0].seq == 0
    assert len(pieces) <= 7
    replayed = Doc()
    for stored in pieces:
        replayed.apply_update(stored.payload)
    assert replayed.get("nodes", type=Map)["seed"] == bench.mesh.node("seed", counter=29)


async def test_changes_are_reported_in_few_calls(bench, wait_until) -> None:
    room = await bench.room("n0")
    found(bench, room)
    for counter in range(1, 200):
        room.put(RoomMap.NODES, "n0", bench.mesh.node("n0", counter=counter))
    await wait_until(lambda: bench.changes.get("n0", 0) > 0)
    await room.settled()
    assert bench.changes["n0"] <= 3


class ProviderChannel:
    """A wire as the stock client wants it."""

    path = "state"

    def __init__(self, wire) -> None:
        self.wire = wire

    def __aiter__(self):
        return self

    async def __anext__(self) -> bytes:
        frame = await self.recv()
        if frame is None:
            raise StopAsyncIteration
        return frame

    async def send(self, frame: bytes) -> None:
        await self.wire.there.send(frame)

    async def recv(self) -> bytes | None:
        return await self.wire.back.recv()


async def test_the_stock_python_client_reads_and_writes(bench, wait_until) -> None:
    room = await bench.room("n0")
    found(bench, room)
    wire = bench.attach(room, "stock")
    doc = Doc()
    nodes, admissions = doc.get("nodes", type=Map), doc.get("admissions", type=Map)
    async with Provider(doc, ProviderChannel(wire)) as provider:
        await provider.synced.wait()
        assert len(admissions) == 6
        room.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
        await wait_until(lambda: "n0" in nodes)
        nodes["n1"] = bench.mesh.node("n1")
        await wait_until(lambda: bench.indexes["n0"].record(RoomMap.NODES, "n1") is not None)
    assert "stock" not in bench.closed


async def test_a_room_and_the_stock_python_server_hold_the_same_content(bench, wait_until) -> None:
    """The stock server of ``pycrdt-websocket`` as the other end: it says hello, and answers awareness."""
    room = await bench.room("n0")
    found(bench, room)
    wire = bench.attach(room, "stock")
    async with YRoom(ydoc=Doc()) as stock, asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(stock.serve(ProviderChannel(wire)))
        nodes, admissions = (stock.ydoc.get(name, type=Map) for name in ("nodes", "admissions"))
        await wait_until(lambda: len(admissions) == 6)
        room.put(RoomMap.NODES, "n0", bench.mesh.node("n0"))
        await wait_until(lambda: "n0" in nodes)
        nodes["n1"] = bench.mesh.node("n1")
        await wait_until(lambda: bench.indexes["n0"].record(RoomMap.NODES, "n1") is not None)
        serving.cancel()
    stock._update_send_stream.close()  # which the library leaves to the garbage collector, with a warning
    assert "stock" not in bench.closed
