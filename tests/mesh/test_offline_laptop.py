"""Nodes that come and go: what was said meanwhile reaches them when they return, without new traffic."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.harness.real.cables import CableNetwork
from gateway.judging.witness import Witness
from outbox.ids import NodeId, Seq
from tests.mesh.acting import all_accepted, at_work, rest, talk
from tests.mesh.conftest import MakeNode
from tests.mesh.judging import faults
from tests.mesh.processes import Node, until

WAITING = {"emitted", "waiting_for_link", "waiting_for_owner"}
MESSAGES = 40
NAMES = (NodeId("vps"), NodeId("mbp"))


def head(node: Node) -> Seq:
    journal = node.journal()
    try:
        return journal.head().seq
    finally:
        journal.close()


@pytest.mark.parametrize("sender_restarts", [False, True])
async def test_a_laptop_that_slept_through_everything(pair: tuple[Node, Node], sender_restarts: bool) -> None:
    vps, mbp = pair
    mbp.kill()
    witness = Witness()
    await talk(vps, "ada", "bob", MESSAGES, witness)
    async with vps.client() as gateway:
        rows = await gateway.deliveries(limit=MESSAGES)
        assert len(rows) == MESSAGES
        assert {row.state for row in rows} <= WAITING
    if sender_restarts:
        vps.kill()
        vps.start()
        await vps.ready()
    silent = head(vps)
    mbp.start()
    await mbp.ready()
    await all_accepted(vps, MESSAGES)
    assert head(vps) == silent, "nothing new was said, nothing was sent again"
    async with mbp.client() as gateway:
        rows = await gateway.agent("bob").inbox()
        assert [row.event_id for row in rows] == [p.event_id for p in witness.account().promises]
    async with vps.client() as gateway:
        assert {row.attempt for row in await gateway.deliveries(limit=MESSAGES)} == {1}
    async with at_work(witness, (mbp, "bob"), (vps, "ada")):
        await rest(pair, MESSAGES)
    assert faults(pair, witness.account()) == []


async def test_the_sender_is_gone_when_the_laptop_returns(pair: tuple[Node, Node]) -> None:
    """They meet only later: each is down while the other is up, and the outbox is what remains."""
    vps, mbp = pair
    mbp.kill()
    witness = Witness()
    await talk(vps, "ada", "bob", 10, witness)
    vps.kill()
    mbp.start()
    await mbp.ready()
    await talk(mbp, "bob", "ada", 10, witness)
    vps.start()
    await vps.ready()
    async with at_work(witness, (mbp, "bob"), (vps, "ada")):
        await rest(pair, 20)
    assert faults(pair, witness.account()) == []


async def test_a_laptop_answers_while_it_is_offline(pair: tuple[Node, Node]) -> None:
    """The agent works through its inbox without a link; the answers leave when there is one again."""
    vps, mbp = pair
    witness = Witness()
    await talk(vps, "ada", "bob", 10, witness)
    await all_accepted(vps, 10)
    vps.kill()
    async with at_work(witness, (mbp, "bob")):

        async def done() -> bool:
            return len(witness.account().settlements) == 10

        await until(done, 60, "bob has worked offline")
    vps.start()
    await vps.ready()
    async with at_work(witness, (vps, "ada")):
        await rest(pair, 10)
    assert faults(pair, witness.account()) == []


@pytest.fixture
async def cables() -> AsyncIterator[CableNetwork]:
    """Between two gateways that publish nothing but the ends of cables."""
    network = await CableNetwork.open(NAMES)
    yield network
    await network.close()


@pytest.fixture
async def wired(make_node: MakeNode, cables: CableNetwork) -> tuple[Node, Node]:
    """A pair on cables, linked."""
    vps, mbp = (make_node(name, **cables.settings(name)) for name in NAMES)
    vps.found()
    vps.start()
    await vps.ready()
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await vps.add_agents("ada")
    await mbp.add_agents("bob")
    for node in (vps, mbp):
        await node.sees("ada", "bob")
    await linked_both(vps, mbp)
    return vps, mbp


async def freeze(cables: CableNetwork) -> None:
    """Nothing passes, and nobody is told: both ends are half-open."""
    await cables.block(*NAMES)
    await cables.block(*reversed(NAMES))


async def linked_both(vps: Node, mbp: Node) -> None:
    await vps.linked("mbp", within_s=60)
    await mbp.linked("vps", within_s=60)


async def down(node: Node, peer: str, within_s: float = 60) -> None:
    async def look() -> bool:
        async with node.client() as gateway:
            links = (await gateway.status()).links
        return any(link.node == peer and link.state != "up" for link in links)

    await until(look, within_s, f"the link of {node.name} to {peer} is down")


async def test_a_link_that_is_cut_and_mended(wired: tuple[Node, Node], cables: CableNetwork) -> None:
    """Cut in the middle of the traffic of both directions, twice."""
    vps, mbp = wired
    witness = Witness()
    async with at_work(witness, (vps, "ada"), (mbp, "bob")), asyncio.TaskGroup() as talking:
        talking.create_task(talk(vps, "ada", "bob", 150, witness))
        talking.create_task(talk(mbp, "bob", "ada", 150, witness))
        for _ in range(2):
            await freeze(cables)
            await cables.snap(*NAMES)
            await down(vps, "mbp")
            await cables.heal()
            await linked_both(vps, mbp)
        await rest(wired, 300)
    assert faults(wired, witness.account()) == []


@pytest.mark.long
async def test_a_link_that_is_half_open_is_found(wired: tuple[Node, Node], cables: CableNetwork) -> None:
    """Nothing passes and nobody is told: pings find it within about 20 s, and what waited arrives."""
    vps, mbp = wired
    await freeze(cables)
    witness = Witness()
    await talk(vps, "ada", "bob", 10, witness)
    await down(vps, "mbp", within_s=60)
    await cables.snap(*NAMES)
    await cables.heal()
    async with at_work(witness, (vps, "ada"), (mbp, "bob")):
        await rest(wired, 10)
    assert faults(wired, witness.account()) == []


async def test_a_node_that_nobody_can_dial(vps: Node, make_node: MakeNode) -> None:
    """It publishes no address: it dials, and both directions work all the same."""
    mbp = make_node("mbp", **{"listen.host": "0.0.0.0", "listen.allow_plain": True})
    await mbp.join(vps)
    mbp.start()
    await mbp.ready()
    await vps.add_agents("ada")
    await mbp.add_agents("bob")
    for node in (vps, mbp):
        await node.sees("ada", "bob")
    async with vps.client() as gateway:
        assert [row.endpoints for row in await gateway.nodes() if row.node == "mbp"] == [()]
    witness = Witness()
    async with at_work(witness, (vps, "ada"), (mbp, "bob")):
        await talk(vps, "ada", "bob", 5, witness)
        await talk(mbp, "bob", "ada", 5, witness)
        await rest((vps, mbp), 10)
        vps.kill()
        vps.start()
        await vps.ready()
        await talk(mbp, "bob", "ada", 10, witness)
        await rest((vps, mbp), 15)
    assert faults((vps, mbp), witness.account()) == []
