"""A gateway whose whole home lies on a disk that is full: it refuses, reads go on, and it comes back."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.client.agent import AgentClient
from gateway.errors import Denied
from gateway.harness.real.disk import SmallDisk
from outbox.ids import EventId
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import until

HOME_KIB = 64 * 1024
WITHIN_S = 60.0
SENDS_MAX = 500
"""Far more than fit into what is left of the last page of a file."""


async def refusal(
    agent: AgentClient, sent: list[EventId], *, most: int = SENDS_MAX
) -> tuple[str, bool] | None:
    """Send until something is refused, and note what was not; the code, and whether it is retryable."""
    for number in range(most):
        try:
            sent.append((await agent.send("bob", f"{number}" * 1_000)).event_id)
        except Denied as refused:
            return refused.wire_code, refused.is_retryable
    return None


@pytest.mark.parametrize("engine_host", ["process"])
async def test_nothing_that_was_answered_is_lost_and_writing_comes_back_by_itself(
    make_node: MakeNode, mount_small: Callable[[Path, int], Path], engine_host: str
) -> None:
    vps = make_node("vps", **{"engine.host": engine_host})
    disk = SmallDisk(mount_small(vps.home.root, HOME_KIB))
    vps.found()
    vps.start()
    await vps.ready()
    await vps.add_agents("ada", "bob")
    async with vps.client() as gateway:
        ada, bob = gateway.agent("ada"), gateway.agent("bob")
        sent = [(await ada.send("bob", "before")).event_id]

        async def kept() -> bool:
            return [row.event_id for row in await bob.inbox(limit=1_000)] == sent

        disk.fill()
        assert await refusal(ada, sent) == ("storage_full", True)
        assert await kept(), "what was answered is there and can be read"
        assert (await gateway.status()).storage_full
        disk.free()

        async def writes() -> bool:
            return await refusal(ada, sent, most=1) is None

        await until(writes, 60, "it writes again")
        assert await kept()
        assert vps.running
    vps.kill()
    vps.start()
    await vps.ready()
    async with vps.client() as gateway:
        bob = gateway.agent("bob")
        assert await kept(), "and after a kill"


async def test_all_that_is_asked_is_answered_while_the_disk_is_full(
    make_node: MakeNode, mount_small: Callable[[Path, int], Path]
) -> None:
    """Whatever waits to be written; who waits for messages stays, and has them when there is room."""
    vps = make_node("vps", **{"engine.host": "process"})
    disk = SmallDisk(mount_small(vps.home.root, HOME_KIB))
    vps.found()
    vps.start()
    await vps.ready()
    await vps.add_agents("ada", "bob")
    async with vps.client() as gateway, asyncio.timeout(WITHIN_S):
        ada, bob = gateway.agent("ada"), gateway.agent("bob")
        sent: list[EventId] = [(await ada.send("bob", "before")).event_id]
        disk.fill()
        assert await refusal(ada, sent) == ("storage_full", True)
        turns = bob.turns(credit=1)
        first = asyncio.ensure_future(anext(turns))
        for _ in range(3):
            assert (await gateway.status()).storage_full
            assert [row.event_id for row in await bob.inbox(limit=1_000)] == sent
            assert len(await gateway.deliveries(limit=1_000)) == len(sent)
            assert (await gateway.trace(sent[0])).event_id == sent[0]
            assert len((await gateway.outbox(limit=1_000)).entries) >= len(sent)
            assert {row.name for row in await gateway.agents()} == {"ada", "bob"}
            assert [row.node for row in await gateway.nodes()] == ["vps"]
            assert await gateway.dead() == await gateway.incidents() == await gateway.invites() == []
            assert (await gateway.prune_outbox()).entries >= len(sent)
            assert (await gateway.prune_dead(older_than_ms=1)) == 0
            assert (await gateway.end_doubts()).nodes == ()
        assert not first.done()
        disk.free()
        turn = await first
        assert turn.event_id == sent[0]
        await turn.ok()

        async def has_room() -> bool:
            return not (await gateway.status()).storage_full

        await until(has_room, WITHIN_S, "it writes again")
        told = [line["event"] for line in map(json.loads, vps.log().splitlines())]
    assert told.count("storage.full") == told.count("storage.back") == 1


def test_a_home_is_not_made_on_a_full_disk_and_the_reason_is_said_each_time(
    make_node: MakeNode, mount_small: Callable[[Path, int], Path]
) -> None:
    """Whatever it is that finds no room first; when there is some, the same command makes the home."""
    vps = make_node("vps")
    disk = SmallDisk(mount_small(vps.home.root, 2048))
    command = [sys.executable, "-m", "gateway", "init", "vps", "--port", "0"]
    env = {**os.environ, **vps.env}
    disk.fill()
    for room in (0, 16, 64):
        os.truncate(disk.ballast, (2048 - room) * 1024)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        what, _, to_do = done.stderr.splitlines()
        assert done.returncode == 1
        assert what.startswith("gateway: ")
        assert to_do.strip().startswith("do: ")
    disk.free()
    assert subprocess.run(command, env=env, capture_output=True, timeout=60, check=False).returncode == 0
