"""What a local agent notices of an admitted node that floods its gateway: how long its requests take.

The flood comes from a process of its own (``tests.mesh.flooding``), as fast as the gateway reads it.
"""

import asyncio
import tempfile
import time
from pathlib import Path

import pytest

from tests.bench.measuring import Sample
from tests.mesh.flooding import FLOODS, flooded
from tests.mesh.knocking import door_of
from tests.mesh.processes import Node

SECONDS = 4.0
ALONE = "nobody floods"


@pytest.mark.bench
@pytest.mark.timeout(600)
async def test_flood() -> None:
    with tempfile.TemporaryDirectory(prefix="gm-", dir="/tmp") as name:
        vps = Node("vps", Path(name))
        vps.found()
        vps.start()
        try:
            await vps.ready()
            await vps.add_agents("ada", "bob", "cat")
            samples = {ALONE: await sends(vps)}
            door = await door_of(vps)
            for number, flood in enumerate(FLOODS):
                lab = door.newcomer(f"lab{number}")
                await lab.join(await door.invite(lab.name))
                async with flooded(lab, flood) as process:
                    samples[flood] = await sends(vps)
                    assert process.poll() is None, "whoever keeps to the protocol is not thrown out"
        finally:
            vps.kill()
    print()
    for flood, sample in samples.items():
        print(
            f"  {flood:20} p50 {sample.p50_ms:8.1f} ms   p99 {sample.p99_ms:8.1f} ms"
            f"   {sample.p50_ms / samples[ALONE].p50_ms:6.1f} times as long"
        )


async def sends(node: Node) -> Sample:
    """One message after the other to an agent of the same node."""
    times = []
    async with node.client() as gateway:
        agent, end = gateway.agent("ada"), time.perf_counter() + SECONDS
        while (begun := time.perf_counter()) < end:
            await agent.send("bob", "hello")
            times.append((time.perf_counter() - begun) * 1000)
            await asyncio.sleep(0)
    times.sort()
    return Sample(len(times) / SECONDS, times[len(times) // 2], times[int(len(times) * 0.99)])
