"""Two gateways, two agents: send, accepted, reply, processed, against four syncs of the same disk.

Four processes' worth of work on this machine: two gateways, and both agents through the Python client in the
benchmark's own process. A round trip needs four commits in sequence, each with one fsync (synchronous=FULL).
"""

import asyncio
import time
from pathlib import Path

import pytest

from gateway.client.turns import Turn
from tests.bench.gateways import Node, two_gateways
from tests.bench.raw import raw_limit

pytestmark = [pytest.mark.bench, pytest.mark.timeout(240)]

SECONDS = 4.0
IN_FLIGHT = (1, 10, 100)
TEXT = "x" * 200


async def answer_for_ever(mbp: Node) -> None:
    async def answer(turn: Turn) -> None:
        await turn.reply(TEXT)

    async with mbp.client.agent("answerer").turns("bench", credit=100) as turns, asyncio.TaskGroup() as work:
        async for turn in turns:
            work.create_task(answer(turn))


async def collect_replies(vps: Node, waiting: dict[str, asyncio.Future[None]]) -> None:
    async def done(turn: Turn) -> None:
        await turn.ok()

    async with vps.client.agent("asker").turns("bench", credit=200) as turns, asyncio.TaskGroup() as work:
        async for turn in turns:
            asked = turn.event.corr_id or ""
            waiting.setdefault(asked, asyncio.get_running_loop().create_future()).set_result(None)
            work.create_task(done(turn))


async def measure(vps: Node, waiting: dict[str, asyncio.Future[None]], in_flight: int) -> list[float]:
    asker, times = vps.client.agent("asker"), []
    end = time.perf_counter() + SECONDS

    async def caller() -> None:
        while time.perf_counter() < end:
            begun = time.perf_counter()
            sent = await asker.send("answerer", TEXT)
            future = waiting.setdefault(sent.event_id, asyncio.get_running_loop().create_future())
            await asyncio.wait_for(future, 60)
            del waiting[sent.event_id]
            times.append(time.perf_counter() - begun)

    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return sorted(times)


async def test_round_trip(disk: Path) -> None:
    sync_ms = raw_limit(disk, 1).sync_ms
    print(f"\nfdatasync of one record: {sync_ms:.3f} ms; synchronous=FULL on both gateways")
    waiting: dict[str, asyncio.Future[None]] = {}
    async with two_gateways(disk) as (vps, mbp):
        serving = [
            asyncio.ensure_future(answer_for_ever(mbp)),
            asyncio.ensure_future(collect_replies(vps, waiting)),
        ]
        for in_flight in IN_FLIGHT:
            times = await measure(vps, waiting, in_flight)
            median_ms, p99_ms = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
            syncs = median_ms / (4 * sync_ms)
            print(
                f"{in_flight:4} in flight  {len(times) / SECONDS:8,.0f} round trips/s   "
                f"p50 {median_ms:7.2f} ms = {syncs:6.1f} x 4 fdatasyncs   p99 {p99_ms:7.2f} ms"
            )
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
    print(f"fdatasync of one record, again: {raw_limit(disk, 1).sync_ms:.3f} ms")
