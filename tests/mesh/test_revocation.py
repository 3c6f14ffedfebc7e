"""A node is put out while it talks: everybody cuts it off, what it has said before stands, nothing after."""

import asyncio
import time
from contextlib import closing

import pytest

from gateway.api.rows import IncidentRow
from gateway.errors import Denied
from outbox.ids import NodeId
from tests.mesh.conftest import MakeNode
from tests.mesh.processes import READY_WITHIN_S, Node, refused_with, until


async def three(vps: Node, make_node: MakeNode) -> tuple[Node, Node]:
    """Members ``mbp`` with bob and ``pi`` with cyd, besides the seed ``vps`` with ada."""
    members = []
    for name, agent in (("mbp", "bob"), ("pi", "cyd")):
        node = make_node(name)
        await node.join(vps)
        node.start()
        await node.ready()
        await node.add_agents(agent)
        members.append(node)
    await vps.add_agents("ada")
    for node in (vps, *members):
        await node.sees("ada", "bob", "cyd")
        await node.linked(*(other.name for other in (vps, *members) if other is not node))
    return members[0], members[1]


async def talk(node: Node, agent: str, to: str) -> None:
    """Say something every few moments until nobody lets it."""
    async with node.client() as gateway:
        while await refused_with(gateway.agent(agent).send(to, "still here")) != "node_revoked":
            await asyncio.sleep(0.01)


async def knows(node: Node, out: str) -> bool:
    async with node.client() as gateway:
        return any(row.node == out and row.revoked for row in await gateway.nodes())


async def unlinked(node: Node, out: str) -> bool:
    async with node.client() as gateway:
        return all(link.node != out for link in (await gateway.status()).links)


async def incidents(node: Node) -> list[IncidentRow]:
    async with node.client() as gateway:
        return await gateway.incidents(closed=True)


async def test_a_node_is_revoked_while_it_talks(vps: Node, make_node: MakeNode) -> None:
    mbp, pi = await three(vps, make_node)
    talking = asyncio.create_task(talk(mbp, "bob", "cyd"))

    async def heard() -> int:
        with closing(pi.journal()) as journal:
            return (journal.cursor(NodeId("mbp")) or journal.shown()).seq

    await until(heard, READY_WITHIN_S, "pi hears of bob")
    async with vps.client() as gateway:
        began = time.monotonic()
        done = await gateway.revoke_node("mbp", reason="stolen")
    assert (done.node, done.by, done.reason, done.ban) == ("mbp", "vps", "stolen", False)
    assert done.last_seq > 0

    for node in (vps, pi):
        await until(lambda node=node: unlinked(node, "mbp"), READY_WITHIN_S, f"{node.name} is rid of mbp")
    await until(lambda: knows(mbp, "mbp"), READY_WITHIN_S, "mbp knows")
    print(f"cut off everywhere and told after {time.monotonic() - began:.2f} s")
    await asyncio.wait_for(talking, READY_WITHIN_S)

    async with mbp.client() as gateway:
        status = await gateway.status()
        assert status.process.revoked == "by vps: stolen"
        assert await refused_with(gateway.agent("bob").send("ada", "hello?")) == "node_revoked"
    async with vps.client() as gateway:
        assert await refused_with(gateway.agent("ada").send("bob@pi", "x")) == "unknown_recipient"
        sent = await gateway.agent("ada").send("bob", "are you there?")
        (letter,) = await gateway.dead()
        assert letter.event_id == sent.event_id
        assert letter.error == "node_revoked"

    async def settled() -> bool:
        with closing(pi.journal()) as journal:
            at = journal.cursor(NodeId("mbp"))
            return at is not None and at.seq >= done.last_seq

    await until(settled, READY_WITHIN_S, "pi has read what counts")
    with closing(mbp.journal()) as theirs, closing(vps.journal()) as journal:
        assert journal.cursor(NodeId("mbp")).seq == done.last_seq
        assert theirs.head().seq > done.last_seq, "it said more, and nobody took it"
    assert [row.subject for row in await incidents(pi) if row.kind == "node_revoked"] == ["mbp/1000"]


async def test_a_restart_and_a_lost_room_let_nobody_back_in(vps: Node, make_node: MakeNode) -> None:
    mbp = make_node("mbp")
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await vps.linked("mbp")
    async with vps.client() as gateway:
        await gateway.revoke_node("mbp")
    await until(lambda: unlinked(vps, "mbp"), READY_WITHIN_S, "vps is rid of mbp")
    mbp.kill()
    vps.kill()
    vps.home.room.unlink()
    vps.start()
    await vps.ready()
    assert await knows(vps, "mbp")
    mbp.start()
    await mbp.ready()
    await until(lambda: knows(mbp, "mbp"), READY_WITHIN_S, "mbp knows, by itself or since vps turns it away")
    assert await unlinked(vps, "mbp")


async def test_who_was_away_reads_who_put_it_out_and_why_when_it_is_turned_away(
    vps: Node, make_node: MakeNode
) -> None:
    mbp = make_node("mbp")
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await mbp.add_agents("bob")
    await vps.linked("mbp")
    mbp.kill()
    async with vps.client() as gateway:
        await gateway.revoke_node("mbp", reason="stolen")
    mbp.start()
    await mbp.ready()
    await until(lambda: knows(mbp, "mbp"), READY_WITHIN_S, "mbp knows")
    async with mbp.client() as gateway:
        status = await gateway.status()
        assert status.process.revoked == "by vps: stolen"
        assert await refused_with(gateway.agent("bob").send("bob", "hello?")) == "node_revoked"
    mbp.kill()
    mbp.start()
    await mbp.ready()
    assert await knows(mbp, "mbp"), "its journal has it"
    assert await unlinked(vps, "mbp")


async def test_the_name_comes_back_with_a_new_key(vps: Node, make_node: MakeNode) -> None:
    mbp = make_node("mbp")
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await mbp.add_agents("bob")
    await vps.add_agents("ada")
    await vps.sees("bob")
    await mbp.sees("ada")
    async with mbp.client() as gateway:
        await gateway.agent("bob").send("ada", "before")
    async with vps.client() as gateway:
        await gateway.revoke_node("mbp")
        await gateway.revoke_node("mbp")
    mbp.kill()

    again = make_node("mbp2")
    again.name = NodeId("mbp")
    await again.join(vps)
    again.start()
    await again.ready()
    await again.add_agents("bob")
    await again.linked("vps")
    await again.sees("ada")
    async with again.client() as gateway:
        sent = await gateway.agent("bob").send("ada", "after")

    async def accepted() -> bool:
        async with again.client() as gateway:
            rows = await gateway.deliveries()
            return any(row.event_id == sent.event_id and row.state == "accepted" for row in rows)

    await until(accepted, READY_WITHIN_S, "ada has the message of the new bob")


async def test_who_may_not_is_told_who_may(vps: Node, make_node: MakeNode) -> None:
    mbp, _ = await three(vps, make_node)
    async with mbp.client() as gateway:
        with pytest.raises(Denied) as denied:
            await gateway.revoke_node("pi")
        assert (denied.value.wire_code, denied.value.hint) == ("forbidden", "seeds may: run it on vps")
        assert await refused_with(gateway.revoke_node("nobody")) == "not_found"
    async with vps.client() as gateway:
        assert await refused_with(gateway.revoke_node("vps")) == "forbidden"
