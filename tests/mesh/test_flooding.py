"""An admitted node that floods: agents are served, nodes hear each other, nobody is thrown out for it.

How long requests take is printed by ``tests/bench/test_flood.py``.
"""

from contextlib import closing

import pytest

from gateway.judging.witness import Witness
from outbox.delivery import settled
from outbox.ids import NodeId
from outbox.kinds import Kind
from outbox.records import DeliveryState
from tests.mesh.acting import at_work, talk
from tests.mesh.flooding import flooded
from tests.mesh.knocking import door_of
from tests.mesh.processes import Node, until

MESSAGES = 10
WITHIN_S = 60.0
KINDS = ["long pages", "short pages", "wants", "haves", "beats", "clients", "sockets"]


@pytest.mark.parametrize("flood", KINDS)
async def test_others_are_served(pair: tuple[Node, Node], flood: str) -> None:
    vps, mbp = pair
    door = await door_of(vps)
    await vps.add_agents("cat")
    lab = door.newcomer("lab")
    await lab.join(await door.invite("lab"))
    witness = Witness()
    async with flooded(lab, flood) as process, at_work(witness, (mbp, "bob"), (vps, "ada")):
        await talk(vps, "ada", "bob", MESSAGES, witness)
        await until(lambda: ended(vps), WITHIN_S, "its messages have ended")
        assert process.poll() is None
        if flood.endswith("pages"):
            await until(lambda: moves(vps), WITHIN_S, "the pages are read, too")
    for node in pair:
        assert node.running
        for word in ("Traceback", "tick.failed", "input.failed", "Exception in ASGI"):
            assert word not in node.log() + node.tail(), node.log()[-3000:]


async def ended(node: Node) -> bool:
    with closing(node.journal()) as journal:
        rows = [row for row in journal.deliveries(DeliveryState, 100_000) if row.kind == Kind.MESSAGE]
    return len(rows) == MESSAGES and all(settled(Kind(row.kind), row.state) for row in rows)


async def moves(node: Node) -> bool:
    with closing(node.journal()) as journal:
        head = journal.cursor(NodeId("lab"))
    return head is not None and head.seq > 0
