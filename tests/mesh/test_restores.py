"""Real gateways that come back older than they were: from a backup, an old copy, nothing, or twice."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.client.turns import Turn
from outbox.ids import Epoch, EventId, epoch_ordinal
from outbox.records import DeliveryState
from tests.mesh.processes import Node, until

WITHIN_S = 60.0
DONE = {DeliveryState.PROCESSED, DeliveryState.REPLIED}


def command(node: Node, *arguments: object) -> str:
    """A command on a node's home, as an operator types it."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *map(str, arguments)],
        env={**node.env, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def send(node: Node, agent: str, to: str, text: str) -> EventId:
    async with node.client() as gateway:
        return EventId((await gateway.agent(agent).send(to, text)).event_id)


async def take(node: Node, agent: str) -> Turn:
    """The next turn of an agent, ended well."""
    async with node.client() as gateway, gateway.agent(agent).turns() as turns:
        turn = await anext(turns)
        await turn.ok()
        return turn


async def ends(node: Node, event: EventId) -> None:
    journal = node.journal()
    try:

        async def look() -> bool:
            return any(row.state in DONE for row in journal.obligations(event))

        await until(look, WITHIN_S, f"{event} is processed")
    finally:
        journal.close()


async def waiting(node: Node, agent: str, *, count: int) -> list[str]:
    """The unfinished events of an inbox, as soon as there are so many."""
    found: list[str] = []

    async def look() -> bool:
        async with node.client() as gateway:
            found[:] = [row.event_id for row in await gateway.agent(agent).inbox()]
        return len(found) >= count

    await until(look, WITHIN_S, f"{count} events wait for {agent}")
    return found


async def epoch_of(node: Node) -> Epoch:
    async with node.client() as gateway:
        return (await gateway.status()).epoch


async def in_epoch(node: Node, ordinal: int) -> None:
    """Wait until it has begun that epoch, or a later one, and shows its outbox."""

    async def look() -> bool:
        async with node.client() as gateway:
            status = await gateway.status()
        return epoch_ordinal(status.epoch) >= ordinal and status.process.standing == "proven"

    await until(look, WITHIN_S, f"{node.name} is in epoch {ordinal}")


async def nobody_awaited(node: Node) -> None:
    async def look() -> bool:
        async with node.client() as gateway:
            return not (await gateway.status()).process.awaited

    await until(look, WITHIN_S, f"{node.name} waits for no answer")


def incidents(node: Node) -> set[str]:
    journal = node.journal()
    try:
        return {row.kind for row in journal.incidents(open_only=False)}
    finally:
        journal.close()


async def test_yesterdays_backup_is_put_back_and_nothing_is_done_twice(
    pair: tuple[Node, Node], mesh_dir: Path
) -> None:
    vps, mbp = pair
    before = await send(vps, "ada", "bob", "before")
    await take(mbp, "bob")
    await ends(vps, before)
    backup = mesh_dir / "mbp.backup"
    (mesh_dir / "notes").write_text("a file of bob's")
    command(mbp, "blob", "put", mesh_dir / "notes")
    command(mbp, "backup", backup)
    assert backup.stat().st_mode & 0o777 == 0o600
    done = await send(vps, "ada", "bob", "done after the backup")
    assert (await take(mbp, "bob")).event_id == done
    await ends(vps, done)
    open_still = await send(vps, "ada", "bob", "accepted after the backup")
    await waiting(mbp, "bob", count=1)

    mbp.kill()
    shutil.rmtree(mbp.home.blobs)
    command(mbp, "restore", backup, "--force")
    mbp.start()
    await mbp.ready()
    await in_epoch(mbp, 2)
    await nobody_awaited(mbp)
    assert await waiting(mbp, "bob", count=1) == [open_still], "what was ended is not in the inbox again"
    assert (await take(mbp, "bob")).event_id == open_still
    await ends(vps, open_still)
    assert "possible_duplicate" in incidents(mbp)
    after = await send(mbp, "bob", "ada", "from the new epoch")
    await take(vps, "ada")
    await ends(mbp, after)
    assert command(mbp, "outbox", "verify"), "the log and its file are whole"
    assert len(list(mbp.home.blobs.iterdir())) == 1, "the file came back with the rest"
    assert list(mbp.home.root.glob("before-restore-*/journal.db"))


async def test_an_old_copy_of_the_home_that_somebody_put_back_by_hand(
    pair: tuple[Node, Node], mesh_dir: Path
) -> None:
    vps, mbp = pair
    await ends_from(mbp, vps, "one")
    mbp.kill()
    shutil.copytree(mbp.home.root, mesh_dir / "copy")
    mbp.start()
    await mbp.ready()
    await mbp.linked("vps")
    await ends_from(mbp, vps, "two, which the copy does not hold")
    mbp.kill()
    shutil.rmtree(mbp.home.root)
    shutil.copytree(mesh_dir / "copy", mbp.home.root)
    mbp.start()
    await mbp.ready()
    await in_epoch(mbp, 2)
    await ends_from(mbp, vps, "three, from the new epoch")
    assert "stream_epoch" in incidents(mbp)
    assert not incidents(vps) & {"fork", "stream_recreated"}, "an honest node is not blamed"


async def ends_from(sender: Node, reader: Node, text: str) -> None:
    """A message of bob's to ada, from its sending to its end."""
    event = await send(sender, "bob", "ada", text)
    assert (await take(reader, "ada")).text == text
    await ends(sender, event)


async def test_an_outbox_that_is_gone_begins_anew_and_is_read_from_its_beginning(
    pair: tuple[Node, Node],
) -> None:
    vps, mbp = pair
    await ends_from(mbp, vps, "one")
    first = await epoch_of(mbp)
    mbp.kill()
    for file in mbp.home.root.glob("journal.db*"):
        file.unlink()
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await in_epoch(mbp, epoch_ordinal(first) + 1)
    await mbp.add_agents("bob")
    await ends_from(mbp, vps, "from the beginning")


@pytest.mark.long
async def test_a_home_that_runs_twice_is_told_of_on_all_sides(
    pair: tuple[Node, Node], make_node, mesh_dir: Path
) -> None:
    vps, mbp = pair
    await ends_from(mbp, vps, "one")
    mbp.kill()
    twin = make_node("twin")
    shutil.copytree(mbp.home.root, twin.home.root, dirs_exist_ok=True)
    config = twin.home.config.read_text().replace(str(mbp.port), str(twin.port))
    twin.home.config.write_text(config)
    mbp.start()
    await mbp.ready()
    await mbp.linked("vps")
    twin.start()
    await twin.ready()

    async def look() -> bool:
        for node in (mbp, twin):
            if node.running:
                await send(node, "bob", "ada", f"from {node.port}")
        told = {"own_stream_forked", "stream_epoch", "copy_runs"}
        return bool(incidents(vps) & {"fork", "rollback", "stream_recreated"}) and all(
            incidents(node) & told for node in (mbp, twin)
        )

    await until(look, 2 * WITHIN_S, "everybody is told")
