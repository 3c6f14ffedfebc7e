"""A reader that was away: how fast it catches up, beside how fast the same events come while both are there.

Two real gateways, 100 messages of 300 bytes in flight. The clock of the catch-up starts with the first page
that the reader has handled: starting a process is not catching up.
"""

import asyncio
import time
from pathlib import Path

import pytest

from gateway.home import Home
from outbox.ids import NodeId, Seq
from outbox.reader import JournalReader
from tests.bench.gateways import Node, two_gateways
from tests.bench.table import Target, show

EVENTS = 4_000
IN_FLIGHT = 100
TEXT = "x" * 300
WITHIN_S = 120.0
LOOK_EVERY_S = 0.02


@pytest.mark.bench
@pytest.mark.timeout(600)
async def test_catch_up(disk: Path) -> None:
    async with two_gateways(disk) as (vps, mbp):
        begun = time.perf_counter()
        await say(vps, EVENTS)
        await handled(vps, mbp)
        live_per_s = EVENTS / (time.perf_counter() - begun)
        mbp.stop()
        await say(vps, EVENTS)
        before = cursor(mbp)
        mbp.start()
        while (first := cursor(mbp)) == before:
            await asyncio.sleep(LOOK_EVERY_S / 10)
        begun = time.perf_counter()
        await handled(vps, mbp)
        caught_up_per_s = (cursor(mbp) - first) / (time.perf_counter() - begun)
    print(
        f"\nsynchronous=FULL on both; live at {IN_FLIGHT} in flight {live_per_s:.0f} entries/s,"
        f" catch-up {caught_up_per_s:.0f} entries/s"
    )
    show("catch-up from a cursor, of the live rate", caught_up_per_s / live_per_s, Target(2, 5))


async def say(node: Node, count: int) -> None:
    """So many messages to the other node's agent."""
    asker = node.client.agent("asker")

    async def sender(share: int) -> None:
        for _ in range(share):
            await asker.send("answerer", TEXT)

    async with asyncio.TaskGroup() as senders:
        for _ in range(IN_FLIGHT):
            senders.create_task(sender(count // IN_FLIGHT))


def reader_of(node: Node) -> JournalReader:
    return JournalReader.open(Home.of(node.environ).journal)


def cursor(node: Node) -> Seq:
    """How far mbp has handled vps."""
    reader = reader_of(node)
    try:
        head = reader.cursor(NodeId("vps"))
        return head.seq if head is not None else Seq(0)
    finally:
        reader.close()


async def handled(writer: Node, node: Node) -> None:
    """Until mbp has handled all that vps has written."""
    reader = reader_of(writer)
    try:
        async with asyncio.timeout(WITHIN_S):
            while cursor(node) < reader.head().seq:
                await asyncio.sleep(LOOK_EVERY_S)
    finally:
        reader.close()
