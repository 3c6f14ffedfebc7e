"""``trace`` tells each step of an event with its time, whichever of the two nodes is asked."""

import asyncio
import json
import sys

from gateway.api.trace import EventTrace, Stage, Step
from tests.mesh.processes import Node, until


def by_stage(trace: EventTrace) -> dict[Stage, Step]:
    return {step.stage: step for step in trace.steps}


async def test_each_step_on_both_nodes(pair: tuple[Node, Node]) -> None:
    vps, mbp = pair
    async with vps.client() as here, mbp.client() as there:
        sent = await here.agent("ada").send("bob", "where is this?")
        async with there.agent("bob").turns("bob-1") as turns:
            turn = await anext(turns)
            assert turn.event_id == sent.event_id
            await turn.reply("here")
        await here.agent("ada").wait_for(sent.event_id, "reply", 15)

        async def processed() -> EventTrace | None:
            found = await here.trace(sent.event_id)
            return found if Stage.PROCESSED in by_stage(found) else None

        async def active() -> bool:
            (bob,) = [row for row in await here.agents() if row.name == "bob"]
            return bob.last_active_ms is not None

        at_sender = await until(processed, 60, "the sender knows how it ended")
        await until(active, 60, "the agent's node has told when it was active")
        at_receiver = await there.trace(sent.event_id)
    stages = [Stage.EMITTED, Stage.ACCEPTED, Stage.ENGAGED, Stage.PROCESSED, Stage.REPLIED]
    for trace, told_by in ((at_sender, "vps"), (at_receiver, "mbp")):
        found = by_stage(trace)
        assert set(found) == set(stages)
        assert trace.told_by == told_by
        assert (trace.from_node, trace.to_node) == ("vps", "mbp")
        assert all(step.at_ms is not None for step in found.values())
        assert found[Stage.EMITTED].node == "vps"
        assert {found[stage].node for stage in stages[1:]} == {"mbp"}
        assert found[Stage.PROCESSED].outcome == "ok"
    emitted = by_stage(at_sender)[Stage.EMITTED], by_stage(at_receiver)[Stage.EMITTED]
    assert emitted[0].seq == emitted[1].seq, "both name the place in the sender's outbox"
    for stage in (Stage.ACCEPTED, Stage.PROCESSED, Stage.REPLIED):
        assert by_stage(at_receiver)[stage].seq is not None, "the receiver names its own entries"


async def test_the_command_shows_it_too(pair: tuple[Node, Node]) -> None:
    vps, mbp = pair
    async with vps.client() as gateway:
        event = (await gateway.agent("ada").send("bob", "hello")).event_id
        await gateway.agent("ada").wait_for(event, "accepted", 15)
    for node in (vps, mbp):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gateway",
            "trace",
            event,
            "--json",
            env=node.env,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            output, _ = await process.communicate()
        assert process.returncode == 0
        assert [step["stage"] for step in json.loads(output)["steps"]] == ["emitted", "accepted"]
