"""Durable append against the raw limit of the same disk in the same run (synchronous=FULL, WAL)."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest

from auth.keys import SigningKey
from gateway.clock import Clock
from gateway.courier.limits import CourierLimits
from gateway.engine import Engine
from gateway.engine.inputs import Now, Send
from gateway.engine.own_stream import OwnStream
from gateway.engine.policy import Policy
from gateway.hosting.inline import InlineHost
from gateway.hosting.ticking import Ticking
from gateway.runtime import Runtime
from outbox.batch import Draft, seal
from outbox.chain import Entry
from outbox.envelope import Event, encode_event, encode_header, header_of
from outbox.ids import AgentId, MeshId, NodeId, Seq, make_epoch
from outbox.journal import Journal
from outbox.kinds import Kind
from outbox.records import Identity, LocalAgent
from outbox.timestamps import rfc3339
from stateroom.view import NodeView, OwnerView, View
from tests.bench.raw import RECORD_BYTES, Raw, raw_limit
from tests.bench.table import Target, show

pytestmark = pytest.mark.bench

CLOCK = Clock()
KEY = SigningKey(bytes(range(32)))
HERE, THERE = NodeId("vps"), NodeId("mbp")
MESH = MeshId(KEY.public.jkt)
SECONDS = 2.0
OF_RAW = {1: Target(0.35, 0.6), 100: Target(0.06, 0.12)}


def make_journal(folder: Path) -> Journal:
    identity = Identity(MESH, HERE, make_epoch(1, CLOCK.entropy(6)))
    return Journal.create(folder / "journal.db", identity)


def an_event(size: int = RECORD_BYTES) -> Event:
    event = Event(
        event_id=CLOCK.event_id(),
        kind=Kind.MESSAGE,
        source_node_id=HERE,
        source_agent_id=AgentId("a"),
        to_agent_id=AgentId("b"),
        created_at=rfc3339(CLOCK.wall_ms()),
    )
    room = size - len(encode_event(event)) - len(',"payload":""')
    return msgspec.structs.replace(event, payload=msgspec.Raw(b'"' + b"x" * room + b'"'))


def draft(seq: Seq, to: tuple[NodeId, ...]) -> Draft:
    """An event on its way into the outbox, as the engine makes it."""
    event = an_event()
    body = encode_event(event)
    header = header_of(event, to, len(body))
    return Draft(Entry(seq, encode_header(header), body), header)


def journal_rate(journal: Journal, batch: int) -> float:
    """Events per second, ``batch`` of them a signed checkpoint and a commit."""
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        head = journal.head()
        drafts = [draft(Seq(head.seq + place), (THERE,)) for place in range(1, batch + 1)]
        sealed = seal(journal.identity(), head, drafts, KEY.sign)
        journal.begin()
        journal.append(sealed)
        journal.commit()
        done += batch
    return done / (time.perf_counter() - begun)


class Nowhere:
    """Outlets of a gateway without agents' sockets and links."""

    def handed(self, turn: object) -> None: ...
    def cursor_moved(self, moved: object) -> None: ...
    def stream_broken(self, broken: object) -> None: ...
    def grown(self, stream: object) -> None: ...
    def page_done(self, read: object) -> None: ...
    def agent_changed(self, changed: object) -> None: ...
    def reset(self) -> None: ...


def a_view() -> View:
    nodes = {n: NodeView(node=n, public_key=KEY.public.raw, role="member") for n in (HERE, THERE)}
    owners = {AgentId("a"): HERE, AgentId("b"): THERE}
    agents = {
        agent: OwnerView(agent=agent, node=node, owner_epoch=1, status="active")
        for agent, node in owners.items()
    }
    return View(version=1, mesh=MESH, nodes=nodes, agents=agents, cursors={})


async def send_rate(journal: Journal, waiting: int) -> tuple[float, float]:
    """Sends per second through the whole engine with so many callers waiting; the median wait in ms."""
    journal.begin()
    row = LocalAgent(name=AgentId("a"), owner_epoch=1, token_hash=b"", created_at_ms=CLOCK.wall_ms())
    journal.put_agent(row)
    journal.commit()

    own = OwnStream(journal.identity().epoch)
    own.answered(THERE, 0)

    def make(view: View, now: Now) -> Engine:
        limits, policy = CourierLimits(), Policy()
        return Engine(
            journal,
            view,
            KEY.sign,
            CLOCK,
            now,
            policy=policy,
            limits=limits,
            desk=None,
            own=own,  # type: ignore[arg-type]
        )

    now = Now(CLOCK.wall_ms(), CLOCK.mono_ms())
    runtime = Runtime(InlineHost(Ticking(journal, make, a_view(), now)), journal, a_view(), CLOCK)
    runtime.outlets = Nowhere()
    payload = msgspec.Raw(b'"' + b"x" * 200 + b'"')
    waits: list[float] = []
    end = time.perf_counter() + SECONDS

    async def caller() -> None:
        while time.perf_counter() < end:
            begun = time.perf_counter()
            await runtime.ask(Send(req=runtime.req(), agent=AgentId("a"), to="b", payload=payload))
            waits.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    ticking = asyncio.ensure_future(runtime.run())
    await asyncio.gather(*(caller() for _ in range(waiting)))
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    waits.sort()
    return len(waits) / (time.perf_counter() - begun), waits[len(waits) // 2] * 1000


def line(name: str, rate: float, raw: Raw, more: str = "") -> None:
    share = rate / raw.records_per_s
    print(f"{name:50} {rate:10,.0f} /s   {share:6.2f} of raw {raw.records_per_s:10,.0f} /s  {more}")


async def busy() -> None:
    """One millisecond of other work in every turn of the loop."""
    while True:
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)


async def test_append(disk: Path) -> None:
    raws = {batch: raw_limit(disk, batch) for batch in (1, 100)}
    print(f"\nfdatasync of one record: {raws[1].sync_ms:.3f} ms; synchronous=FULL, {RECORD_BYTES} B a record")
    rates = {}
    for batch in (1, 100):
        folder = disk / f"journal-{batch}"
        folder.mkdir()
        journal = make_journal(folder)
        rates[batch] = journal_rate(journal, batch)
        journal.close()
        line(f"journal: chained, signed, {batch} a commit", rates[batch], raws[batch])
        show(f"append, {batch} a sync, of raw", rates[batch] / raws[batch].records_per_s, OF_RAW[batch])
    show("append, 100 a sync / 1 a sync", rates[100] / rates[1], Target(10, 18))
    for waiting in (1, 100):
        folder = disk / f"engine-{waiting}"
        folder.mkdir()
        journal = make_journal(folder)
        rate, wait_ms = await send_rate(journal, waiting)
        journal.close()
        line(f"engine: send, {waiting} waiting", rate, raws[waiting], f"median wait {wait_ms:.2f} ms")
    folder = disk / "engine-busy"
    folder.mkdir()
    journal, other = make_journal(folder), asyncio.ensure_future(busy())
    beside, _ = await send_rate(journal, 100)
    other.cancel()
    journal.close()
    show("engine: 100 waiting, busy loop, of an idle one", beside / rate, Target(0.1, 0.25))
    print(f"fdatasync of one record, again: {raw_limit(disk, 1).sync_ms:.3f} ms")
