"""Resident memory of a gateway with a million events in its outbox, a hundred agents, at rest and at work."""

import asyncio
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from auth.keyring import Keyring
from gateway.home import Home
from outbox.batch import seal
from outbox.ids import AgentId, Seq
from outbox.journal import Journal
from outbox.limits import BATCH_ENTRIES_MAX
from outbox.records import LocalAgent
from tests.bench.gateways import Node
from tests.bench.table import Target, show
from tests.bench.test_append import draft

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

EVENTS = 1_000_000
AGENTS = 100
SENT_AT_WORK = 20_000
IN_FLIGHT = 200


def fill(home: Home) -> None:
    """Append a million events of 512 bytes, and let a hundred agents live here."""
    sign = Keyring(home.keys).kept_node_key().sign
    journal = Journal.open(home.journal)
    identity = journal.identity()
    for _ in range(EVENTS // BATCH_ENTRIES_MAX):
        head = journal.head()
        drafts = [draft(Seq(head.seq + place), ()) for place in range(1, BATCH_ENTRIES_MAX + 1)]
        journal.begin()
        journal.append(seal(identity, head, drafts, sign))
        journal.commit()
    journal.begin()
    for number in range(AGENTS):
        name = AgentId(f"agent-{number}")
        row = LocalAgent(name=name, owner_epoch=1, token_hash=bytes([number]) * 32, created_at_ms=1)
        journal.put_agent(row)
    journal.commit()
    journal.close()


def resident_mib(pid: int) -> float:
    """What a process holds."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


async def test_memory(disk: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gw") as runtime:
        node = Node("vps", disk, Path(runtime))
        node.command("init", "vps", "--port", "0")
        await asyncio.to_thread(fill, Home.of(node.environ))
        node.start()
        try:
            await node.ready(0)
            at_rest = resident_mib(node.pid)
            print(f"\n{EVENTS:,} events, {AGENTS} agents")
            show("resident at rest, MiB", at_rest, Target(200, 120, at_most=True))
            async with node.client as client:
                agents = [client.agent(f"agent-{number}") for number in range(AGENTS)]
                for piece in range(3):
                    numbers = iter(range(SENT_AT_WORK))

                    async def sender(numbers: Iterator[int] = numbers) -> None:
                        for number in numbers:
                            sent = await agents[number % AGENTS].send(f"agent-{number % 7}", "x" * 200)
                            await agents[number % 7].ack(sent.event_id)

                    await asyncio.gather(*(sender() for _ in range(IN_FLIGHT)))
                    now = resident_mib(node.pid)
                    show(f"after {(piece + 1) * SENT_AT_WORK:,} more", now, Target(200, 120, at_most=True))
        finally:
            node.stop()
