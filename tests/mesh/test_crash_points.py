"""A gateway dies at each named place and starts again: what was answered is kept, and nothing is done twice.

The dying node is in the middle of a conversation, or of letting somebody in. Afterwards its journal and its
peer's are held against what the agents were told (I1 to I5 of ``docs/PROTOCOL.md``).
"""

import asyncio
import random

import pytest

from auth.errors import AuthError
from auth.joincodes import decode_join_code
from gateway.clock import Clock
from gateway.crashpoint import CrashPoint
from gateway.errors import Denied, Unreachable
from gateway.joining import join
from gateway.judging.witness import Witness
from tests.mesh.acting import at_work, rest, talk
from tests.mesh.conftest import MakeNode
from tests.mesh.judging import faults
from tests.mesh.processes import ENGINE_HOST, Node

COLLECTING = {CrashPoint.COLLECT_AFTER_TMP, CrashPoint.COLLECT_AFTER_RENAME}
"""Of the collector, which is no gateway: see its own tests."""

STORING = {CrashPoint.BLOB_AFTER_SYNC, CrashPoint.BLOB_AFTER_RENAME}
"""Of blobs on their way in: see ``test_blobs``."""

JOINING = {
    CrashPoint.EXCHANGE_BEFORE_COMMIT,
    CrashPoint.EXCHANGE_AFTER_COMMIT,
    CrashPoint.UPGRADE_BEFORE_COMMIT,
    CrashPoint.UPGRADE_AFTER_COMMIT,
    CrashPoint.ROOM_AFTER_APPLY,
}

PASSINGS = {
    CrashPoint.ENGINE_BEFORE_COMMIT: 25,
    CrashPoint.ENGINE_AFTER_COMMIT: 25,
    CrashPoint.ENGINE_AFTER_EFFECTS: 25,
    CrashPoint.LINK_BEFORE_SUBMIT: 6,
    CrashPoint.LINK_AFTER_COMMIT: 6,
    CrashPoint.LINK_AFTER_SEEN: 1,  # once a second at most
    CrashPoint.ANSWER_BEFORE_SEND: 12,
    CrashPoint.DELIVER_BEFORE_SEND: 5,
    CrashPoint.DELIVER_AFTER_SEND: 5,
}
"""The fatal passing: late enough to be in the middle of the conversation."""

ASIDE = {CrashPoint.ENGINE_AFTER_COMMIT}
"""Passed where the journal is written, and nobody has heard of the commit."""

MESSAGES = 25

LONG = (pytest.mark.long, pytest.mark.timeout(600))
"""Twenty starts, on a machine that does other things."""


def test_every_crash_point_has_its_test() -> None:
    assert PASSINGS.keys() | JOINING | COLLECTING | STORING == set(CrashPoint)


@pytest.mark.parametrize("dying", ["mbp", pytest.param("vps", marks=pytest.mark.long)])
@pytest.mark.parametrize("point", PASSINGS)
async def test_a_conversation_survives(pair: tuple[Node, Node], point: CrashPoint, dying: str) -> None:
    await survive(pair, point, dying)


@pytest.mark.parametrize("engine_host", ["process"])
@pytest.mark.parametrize(
    "point",
    [point if point in ASIDE else pytest.param(point, marks=pytest.mark.long) for point in PASSINGS],
)
async def test_a_conversation_survives_the_process_of_the_journal(
    pair: tuple[Node, Node], point: CrashPoint
) -> None:
    """Some points are passed there, the others in the gateway: whichever dies, the other one ends too."""
    await survive(pair, point, "mbp")


async def survive(pair: tuple[Node, Node], point: CrashPoint, dying: str) -> None:
    vps, mbp = pair
    witness = Witness()
    victim = mbp if dying == "mbp" else vps
    victim.kill()
    victim.start(f"{point}:{PASSINGS[point]}")
    async with at_work(witness, (vps, "ada"), (mbp, "bob")):
        async with asyncio.TaskGroup() as talking:
            talking.create_task(talk(vps, "ada", "bob", MESSAGES, witness))
            talking.create_task(talk(mbp, "bob", "ada", MESSAGES, witness))
            await victim.dead()
            victim.start()
            await victim.ready()
        await rest(pair, 2 * MESSAGES)
    assert witness.promises >= 2 * MESSAGES
    assert faults(pair, witness.account()) == []


@pytest.mark.parametrize("point", sorted(JOINING))
async def test_a_join_survives(vps: Node, make_node: MakeNode, point: CrashPoint) -> None:
    """The issuer dies while it lets a node in; the same join code, used again, finds the same way in."""
    mbp = make_node("mbp")
    async with vps.client() as gateway:
        code = decode_join_code((await gateway.invite("mbp")).join_code)
    vps.kill()
    vps.start(point)
    await vps.ready()
    with pytest.raises(Unreachable):
        await join(mbp.home, code, None, Clock(), mbp.settings)
    await vps.dead()
    vps.start()
    await vps.ready()
    await join(mbp.home, code, None, Clock(), mbp.settings)
    mbp.start()
    await mbp.ready()
    await mbp.linked("vps")
    async with vps.client() as gateway:
        assert [row.status for row in await gateway.invites()] == ["used"]
        assert [row.node for row in await gateway.nodes()] == ["mbp", "vps"]
    lab = make_node("lab")
    with pytest.raises((Denied, AuthError)):
        await join(lab.home, code, None, Clock(), lab.settings)


@pytest.mark.parametrize(
    ("kills", "engine_host"),
    [
        (2, ENGINE_HOST),
        pytest.param(10, ENGINE_HOST, marks=LONG),
        pytest.param(10, "process", marks=LONG),
    ],
)
async def test_kills_at_random_moments(pair: tuple[Node, Node], kills: int) -> None:
    """Each gateway is killed again and again under load, now and then both at once."""
    chance = random.Random(kills)
    witness = Witness()
    messages = 60 * kills
    async with at_work(witness, (vps := pair[0], "ada"), (mbp := pair[1], "bob")):
        async with asyncio.TaskGroup() as talking:
            talking.create_task(talk(vps, "ada", "bob", messages, witness))
            talking.create_task(talk(mbp, "bob", "ada", messages, witness))
            for number in range(2 * kills):
                before = witness.promises
                goal = before + chance.randrange(5, 30)
                await _more(witness, min(goal, 2 * messages))
                node = pair[number % 2]
                node.kill()
                node.start()
                await node.ready()
        await rest(pair, 2 * messages)
    assert faults(pair, witness.account()) == []


async def _more(witness: Witness, promises: int) -> None:
    async with asyncio.timeout(60):
        while witness.promises < promises:
            await asyncio.sleep(0.005)
