"""Two laptops that are never online together reach each other through a seed."""

import pytest

from gateway.api.trace import Stage
from gateway.errors import Denied
from gateway.judging.witness import Witness
from outbox.ids import NodeId
from tests.mesh.acting import at_work, rest, talk
from tests.mesh.conftest import MakeNode
from tests.mesh.judging import faults
from tests.mesh.processes import Node, until

MBP, LAB = NodeId("mbp"), NodeId("lab")
MESSAGES = 20


@pytest.fixture
async def laptops(vps: Node, make_node: MakeNode) -> tuple[Node, Node, Node]:
    """A seed that both have joined, ``bob`` at mbp and ``cat`` at lab; only the seed runs at the end."""
    nodes = [vps]
    for name, agent in (("mbp", "bob"), ("lab", "cat")):
        node = make_node(name)
        await node.join(vps)
        node.start()
        await node.ready()
        await node.add_agents(agent)
        nodes.append(node)
    for node in nodes:
        await node.sees("bob", "cat")
    for node in nodes[1:]:
        node.kill()
    return nodes[0], nodes[1], nodes[2]


async def carried(seed: Node, writer: Node) -> None:
    """The seed has copied all that a node has written."""

    async def look() -> bool:
        journal, written = seed.journal(), writer.journal()
        try:
            copy = journal.copy(NodeId(writer.name))
            return copy is not None and copy.last == written.head().seq
        finally:
            journal.close()
            written.close()

    await until(look, 60, f"{seed.name} holds all of {writer.name}")


async def test_laptops_that_are_never_online_together(laptops: tuple[Node, Node, Node]) -> None:
    vps, mbp, lab = laptops
    witness = Witness()
    mbp.start()
    await mbp.ready()
    await talk(mbp, "bob", "cat", MESSAGES, witness)
    await carried(vps, mbp)
    mbp.kill()

    lab.start()
    await lab.ready()
    async with at_work(witness, (lab, "cat")):

        async def done() -> bool:
            return len(witness.account().settlements) == MESSAGES

        await until(done, 60, "cat has worked it all off")
    await carried(vps, lab)
    lab.kill()

    mbp.start()
    await mbp.ready()

    async def heard() -> bool:
        async with mbp.client() as gateway:
            found = (await gateway.status()).deliveries
        return found.get("processed", 0) + found.get("replied", 0) == MESSAGES

    await until(heard, 60, "bob knows that cat has worked it off")
    promise = witness.account().promises[0]
    async with mbp.client() as gateway:
        trace = await gateway.trace(promise.event_id)
    assert "vps" in str(trace), "the hop is shown"
    async with vps.client() as gateway:
        carried_ = await gateway.trace(promise.event_id)
        with pytest.raises(Denied):
            await gateway.trace("evt_" + "0" * 32)
    assert (carried_.carried, carried_.from_node, carried_.to_node) == (True, "mbp", "lab")
    ends = {step.stage: step for step in carried_.steps}
    assert ends.keys() >= {Stage.EMITTED, Stage.ACCEPTED, Stage.ENGAGED}
    assert (ends[Stage.EMITTED].node, ends[Stage.ACCEPTED].node) == ("mbp", "lab")
    assert ends[Stage.ACCEPTED].seq is not None, "the place in the outbox of who accepted it"


async def test_a_seed_in_the_middle_pushes_while_it_runs(laptops: tuple[Node, Node, Node]) -> None:
    """All three are up; the seed goes away meanwhile, and what it has missed it copies when it is back."""
    vps, mbp, lab = laptops
    witness = Witness()
    for node in (mbp, lab):
        node.start()
        await node.ready()
    async with at_work(witness, (mbp, "bob"), (lab, "cat")):
        await talk(mbp, "bob", "cat", 10, witness)
        await talk(lab, "cat", "bob", 10, witness)
        await rest((vps, mbp, lab), 20)
        vps.kill()
        await talk(mbp, "bob", "cat", 20, witness)  # the first ten under their old keys: ten are new
        vps.start()
        await vps.ready()
        await rest((vps, mbp, lab), 30)
    assert faults((vps, mbp, lab), witness.account()) == []
