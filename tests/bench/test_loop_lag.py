"""What holds the loop of a gateway for more than a few milliseconds, by where it comes from.

The gateway runs in the benchmark's own loop, on plain asyncio, whose debug mode measures every callback (and
makes all of them slower). A tick with its commit may hold the loop; nothing else should.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

from gateway.app import Gateway
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.config import load
from gateway.home import Home
from tests.bench.gateways import Node
from tests.bench.loop_lag import SLOW_S, slow_callbacks
from tests.bench.measuring import measure

pytestmark = [pytest.mark.bench, pytest.mark.timeout(120)]

SECONDS = 3.0
AGENTS = ("asker", "answerer")


async def test_what_holds_the_loop(disk: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gw") as runtime:
        node = Node("vps", disk, Path(runtime))
        node.command("init", "vps", "--port", "0")
        home = Home.of(node.environ)
        gateway = Gateway(home, load(home.config, {}, {}).config, Clock())
        ready = asyncio.Event()
        serving = asyncio.ensure_future(gateway.run(lambda _: ready.set()))
        await ready.wait()
        async with GatewayClient.of_home(home) as client:
            for name in AGENTS:
                await client.add_agent(name)
            await under_load(client, home)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await gateway.close()


async def under_load(client: GatewayClient, home: Home) -> None:
    words = [sys.executable, "-m", "tests.bench.mesh_answerer", str(home.socket), "100"]
    answerer = await asyncio.create_subprocess_exec(*words)
    asker = client.agent("asker")

    async def ask() -> None:
        await asker.send("answerer", "x" * 200)

    await asyncio.wait_for(ask(), 20)
    for name, work in {
        "messages, 100 in flight": lambda: measure(ask, 100, SECONDS),
        "a thousand rows of an inbox": lambda: asker.inbox(done=True, limit=1000),
        "a thousand deliveries": lambda: client.deliveries(limit=1000),
        "a page of the outbox": lambda: client.outbox(limit=1000),
        "status": client.status,
    }.items():
        with slow_callbacks() as slow:
            await work()
        print(f"\n{name}: callbacks above {SLOW_S * 1000:.0f} ms")
        for origin, times in sorted(slow.by_origin.items(), key=lambda item: -sum(item[1])):
            print(f"  {origin:50} {len(times):5} x, longest {max(times) * 1000:7.1f} ms")
    answerer.terminate()
    await answerer.wait()
