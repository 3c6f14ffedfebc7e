"""Where the journal is written: in the loop of the gateway, or in a process of its own (``engine.host``).

Two pairs of gateways with their agents, one of each kind, take turns in one run: on the disk as it is, and
with 2 ms more for each sync. Then one engine beside a loop that does 1 ms of other work in every turn. What
the processor gives is the same whatever else the machine does: read that first.
"""

import asyncio
import os
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest

from gateway.clock import Clock
from gateway.config import Config, Engine
from gateway.engine.inputs import AddAgent, Now, Send
from gateway.founding import found
from gateway.home import Home
from gateway.runtime import Runtime
from gateway.writing.choice import open_writer
from gateway.writing.opening import Boot, Opening
from outbox.ids import AgentId, NodeId
from outbox.lock import HomeLock
from outbox.reader import JournalReader
from stateroom.view import NodeView, OwnerView, View
from tests.bench.measuring import Sample, measure, median
from tests.bench.mesh import MeshPair, mesh_pair
from tests.bench.raw import raw_limit
from tests.bench.slowdisk import slowed, why_not_slow
from tests.bench.table import Target, show
from tests.bench.test_append import Nowhere, busy

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

ROUNDS, SECONDS = 5, 2.0
HOSTS = ("inline", "process")
CLOCK = Clock()


@pytest.mark.parametrize("delay_ms", [0, 2])
async def test_round_trips(disk: Path, delay_ms: int) -> None:
    if delay_ms and why_not_slow():
        pytest.skip(why_not_slow())
    sync_ms = raw_limit(disk, 1).sync_ms
    print(f"\nfdatasync {sync_ms:.3f} ms, and {delay_ms} ms more; load {os.getloadavg()[0]:.1f}")
    async with AsyncExitStack() as stack:
        pairs = {
            host: await stack.enter_async_context(mesh_pair(disk / host, prefix=slowed(delay_ms), host=host))
            for host in HOSTS
        }
        for in_flight in (1, 10, 100):
            samples: dict[str, list[Sample]] = {host: [] for host in HOSTS}
            costs_us: dict[str, list[float]] = {host: [] for host in HOSTS}
            for _ in range(ROUNDS):
                for host, pair in pairs.items():
                    sample, cost_us = await one(pair, in_flight)
                    samples[host].append(sample)
                    costs_us[host].append(cost_us)
            for host in HOSTS:
                median(samples[host]).print(f"journal written: {host}", in_flight)
            middles = [sorted(costs_us[host])[ROUNDS // 2] for host in HOSTS]
            print(f"  processor of both gateways a round trip: {middles[0]:.0f} and {middles[1]:.0f} us")
            gain = sorted(b.per_s / a.per_s for a, b in zip(*samples.values(), strict=True))
            waits = {host: f"{await read_ms(pair, in_flight):.1f}" for host, pair in pairs.items()}
            print(f"  p99 of a read meanwhile, ms: {' and '.join(waits.values())}")
            print(f"  process / inline, each round: {' '.join(f'{ratio:.2f}' for ratio in gain)}")


async def one(pair: MeshPair, in_flight: int) -> tuple[Sample, float]:
    """A stretch, and what a round trip of it took of the processor, in microseconds."""
    before = sum(node.cpu_s for node in pair.gateways)
    sample = await measure(pair.ask, in_flight, SECONDS)
    used_s = sum(node.cpu_s for node in pair.gateways) - before
    return sample, used_s / (sample.per_s * SECONDS) * 1e6


async def read_ms(pair: MeshPair, in_flight: int) -> float:
    """How long somebody waits who only wants to know whether the first gateway lives."""
    client, waits = pair.gateways[0].client, []
    talking = asyncio.ensure_future(measure(pair.ask, in_flight, SECONDS))
    while not talking.done():
        begun = time.perf_counter()
        await client.status()
        waits.append((time.perf_counter() - begun) * 1000)
    await talking
    return sorted(waits)[int(len(waits) * 0.99)]


async def test_beside_a_busy_loop(disk: Path) -> None:
    print(f"\n100 waiting; fdatasync {raw_limit(disk, 1).sync_ms:.3f} ms")
    for host in HOSTS:
        home = Home(disk / host, disk / "run")
        found(home, NodeId("vps"), CLOCK, {})
        config = Config(engine=Engine(host=host))
        with HomeLock(home.lock) as lock:
            writer = open_writer(Opening(home, config, Boot.made(CLOCK)), CLOCK, lock)
            reader = JournalReader.open(home.journal)
            now = Now(CLOCK.wall_ms(), CLOCK.mono_ms())
            runtime = Runtime(await writer.host(view(reader), now), reader, view(reader), CLOCK)
            runtime.outlets = Nowhere()  # type: ignore[assignment]
            running = asyncio.ensure_future(runtime.run())
            await runtime.ask(AddAgent(runtime.req(), AgentId("a"), bytes(32)))
            idle = await measure(lambda runtime=runtime: send(runtime), 100, SECONDS)
            other = asyncio.ensure_future(busy())
            beside = await measure(lambda runtime=runtime: send(runtime), 100, SECONDS)
            for task in (other, running):
                task.cancel()
            await asyncio.gather(other, running, return_exceptions=True)
            reader.close()
            await writer.close()
        idle.print(f"engine, send, {host}: idle loop", 100)
        beside.print(f"engine, send, {host}: busy loop", 100)
        show(f"{host}: busy loop, of an idle one", beside.per_s / idle.per_s, Target(0.1, 0.25))


async def send(runtime: Runtime) -> None:
    payload = msgspec.Raw(b'"' + b"x" * 200 + b'"')
    await runtime.ask(Send(req=runtime.req(), agent=AgentId("a"), to="b", payload=payload))


def view(reader: JournalReader) -> View:
    who = reader.identity()
    there = NodeId("mbp")
    nodes = {node: NodeView(node=node, public_key=bytes(32), role="member") for node in (who.node, there)}
    agents = {
        agent: OwnerView(agent=agent, node=node, owner_epoch=1, status="active")
        for agent, node in ((AgentId("a"), who.node), (AgentId("b"), there))
    }
    return View(version=1, mesh=who.mesh, nodes=nodes, agents=agents, cursors={})
