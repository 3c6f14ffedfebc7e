"""Making, starting and stopping nodes when something comes between: kills, second starts, signals."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auth.joincodes import decode_join_code
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.engine.limits import CLOCK_ROUNDING_MS
from gateway.errors import HomeError
from gateway.fleet.ports import free_ports
from gateway.fleet.process import children
from gateway.founding import found
from gateway.home import write_private
from gateway.joining import join
from outbox.database import Database
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import LOST, READY_WITHIN_S, Node, until

STEPS = ["keys/node.key", "room.db", "issuer.json", "gateway.toml", "journal.db"]
"""What a join puts down, in this order."""


def cut_short(node: Node) -> None:
    """What a kill in the middle of making a journal leaves."""
    Database.create(node.home.journal, wal_bytes=0).close()


def test_a_founding_that_was_cut_short_is_repeated(make_node: MakeNode) -> None:
    vps = make_node("vps")
    vps.home.create()
    cut_short(vps)
    founded = found(vps.home, vps.name, Clock(), vps.settings)
    with pytest.raises(HomeError):
        found(vps.home, vps.name, Clock(), vps.settings)
    assert founded.node == "vps"


@pytest.mark.parametrize("content", [b"\xff\xfe" * 100, b""])
@pytest.mark.parametrize("name", ["admin.token", "seed.jwt", "seed.record", "issuer.json"])
async def test_a_file_of_the_home_that_is_damaged_is_named(
    make_node: MakeNode, name: str, content: bytes
) -> None:
    """It serves nobody with what is none: an empty record would hide the real one."""
    vps = make_node("vps")
    vps.found()
    write_private(vps.home.root / name, content)
    vps.start()

    async def ended() -> bool:
        return not vps.running

    await until(ended, READY_WITHIN_S, "it ends")
    assert vps.process is not None
    assert vps.process.returncode == 1
    assert "Traceback" not in vps.tail()
    assert name in vps.tail()
    assert "do:" in vps.tail()


@pytest.mark.parametrize("step", STEPS)
async def test_a_join_that_is_killed_is_run_again(vps: Node, make_node: MakeNode, step: str) -> None:
    """Killed as soon as it has put down one of its files; the same command, once more, ends it."""
    mbp = make_node("mbp")
    async with vps.client() as gateway:
        text = (await gateway.invite("mbp")).join_code
    command = [sys.executable, "-m", "gateway", "join", "--invite", "-", "--port", str(mbp.port)]
    with mbp.errors.open("wb") as errors:
        joining = subprocess.Popen(
            command, env={**os.environ, **mbp.env}, stdin=subprocess.PIPE, stdout=errors, stderr=errors
        )
    assert joining.stdin is not None
    joining.stdin.write(text.encode())
    joining.stdin.close()

    async def put_down() -> bool:
        return (mbp.home.root / step).exists() or joining.poll() is not None

    await until(put_down, 60, f"{step} is there")
    joining.kill()
    joining.wait()
    key = (mbp.home.keys / "node.key").read_bytes()
    if joining.returncode != 0:
        try:
            await join(mbp.home, decode_join_code(text), None, Clock(), mbp.settings)
        except HomeError:
            with contextlib.closing(mbp.journal()) as journal:  # the kill came after the end, however seldom
                assert journal.identity().node == mbp.name
    assert (mbp.home.keys / "node.key").read_bytes() == key
    mbp.start()
    await mbp.ready()
    await mbp.linked("vps")
    async with vps.client() as gateway:
        assert [row.status for row in await gateway.invites()] == ["used"]


async def test_a_journal_of_nobody_does_not_stop_a_join(vps: Node, make_node: MakeNode) -> None:
    mbp = make_node("mbp")
    mbp.home.create()
    cut_short(mbp)
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()


async def test_a_second_process_is_refused_and_the_first_goes_on(vps: Node, mesh_dir: Path) -> None:
    """F6, H8: one home, one gateway."""
    second = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        "run",
        env={**os.environ, **vps.env},
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, errors = await second.communicate()
    assert second.returncode not in {0, None}
    assert b"Traceback" not in errors
    await vps.ready()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order(pair: tuple[Node, Node], number: signal.Signals) -> None:
    vps, _ = pair
    process = vps.process
    assert process is not None
    process.send_signal(number)

    async def ended() -> bool:
        return process.poll() is not None

    await until(ended, 60, "it has ended")
    assert process.returncode in {0, 130}, vps.tail()
    assert "gateway.stopped" in vps.log()
    assert "Traceback" not in vps.log() + vps.tail()
    vps.process = None
    vps.start()
    await vps.ready()
    await vps.linked("mbp")


async def test_status_says_where_agents_reach_it(make_node: MakeNode) -> None:
    """By each of those places, which a shell script hands to curl."""
    (port,) = free_ports(1)
    vps = make_node("vps", **{"local.port": port})
    vps.found()
    vps.start()
    await vps.ready()
    async with vps.client() as gateway:
        socket, url = (await gateway.status()).process.local
    token = vps.home.admin_token.read_text().strip()
    for client in (GatewayClient(socket=Path(socket)), GatewayClient(url=url, token=token)):
        async with client as gateway:
            assert (await gateway.status()).node == "vps"


async def test_nodes_show_how_far_another_outbox_goes(pair: tuple[Node, Node]) -> None:
    """The record of a node is renewed seldom; its cursors tell the head as it moves."""
    vps, mbp = pair
    async with mbp.client() as gateway:
        for _ in range(3):
            await gateway.agent("bob").send("ada", "hello")

    async def known() -> bool:
        async with vps.client() as gateway:
            row = next(row for row in await gateway.nodes() if row.node == "mbp")
        return row.head_seq >= 3

    await until(known, 60, "the head of mbp is shown")


async def test_nodes_show_how_far_another_clock_is_off(pair: tuple[Node, Node]) -> None:
    """Both run on this machine: what a link measures is wrong by half its round trip at most."""
    vps, _ = pair

    async def measured() -> bool:
        async with vps.client() as gateway:
            (link,) = (await gateway.status()).links
            row = next(row for row in await gateway.nodes() if row.node == "mbp")
        if row.clock_ahead_ms is None or link.clock_within_ms is None:
            return False
        return abs(row.clock_ahead_ms) <= link.clock_within_ms + CLOCK_ROUNDING_MS

    await until(measured, 60, "the clock of mbp was measured")


def ways_to(path: Path, pid: int) -> set[int]:
    """How a process has opened a file: O_RDONLY, O_RDWR."""
    ways = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if link.readlink() == path:
                facts = dict(
                    line.split(":\t", 1)
                    for line in Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().splitlines()
                    if ":\t" in line
                )
                ways.add(int(facts["flags"], 8) & os.O_ACCMODE)
    return ways


@pytest.mark.parametrize("engine_host", ["process"])
async def test_a_gateway_ends_when_the_process_of_its_journal_is_killed(pair: tuple[Node, Node]) -> None:
    """It says why; started again it has all that it had answered. It only ever reads the journal itself."""
    if sys.platform != "linux":
        pytest.skip("only Linux tells who the children of a process are")
    vps, mbp = pair
    async with vps.client() as gateway:
        assert (await gateway.status()).process.engine_host == "process"
        sent = (await gateway.agent("ada").send("bob", "kept")).event_id
    assert vps.process is not None
    (writer,) = children(vps.process.pid)
    assert ways_to(vps.home.journal, vps.process.pid) == {os.O_RDONLY}
    assert os.O_RDWR in ways_to(vps.home.journal, writer)
    os.kill(writer, signal.SIGKILL)
    await vps.dead()
    what, why, to_do = vps.tail().splitlines()[-3:]
    assert LOST in what
    assert "ended by itself" in why
    assert "start the gateway again" in to_do
    assert "gateway.failed" in vps.log()
    vps.start()
    await vps.ready()
    reader = mbp.journal()

    async def arrived() -> bool:
        return bool(reader.ledger(sent))

    await until(arrived, READY_WITHIN_S, "it arrives")
    reader.close()
