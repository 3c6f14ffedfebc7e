"""Agents at work while gateways die: each insists until it is answered, and writes down what it was told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.api.answers import SentAnswer
from gateway.client import AgentClient, Turn
from gateway.errors import Denied
from gateway.judging.witness import Promise, Witness
from outbox.errors import UnknownRecipient
from outbox.ids import AgentId, agent_id
from outbox.kinds import Kind
from outbox.records import DeliveryState
from tests.mesh.judging import at_rest
from tests.mesh.processes import Node, until

INSIST_S = 60.0
"""How long a send is repeated under its id: far above a restart."""

REST_WITHIN_S = 60.0


async def send(node: Node, client: AgentClient, to: str, name: str, witness: Witness) -> None:
    """Send one message and write down the promise."""
    sent = await _sent(client, to, name)
    witness.heard(
        Promise(
            key=name,
            node=node.name,
            agent=client.name,
            event_id=sent.event_id,
            reply=False,
            repeated=sent.duplicate,
        )
    )


async def _sent(client: AgentClient, to: str, name: str) -> SentAnswer:
    """A gateway that has just started may not have heard of the other agent yet."""
    async with asyncio.timeout(INSIST_S):
        while True:
            try:
                return await client.send(to, f"message {name}", id=name, within_s=INSIST_S)
            except Denied as error:
                if error.wire_code != UnknownRecipient.code:
                    raise
                await asyncio.sleep(0.1)


async def talk(node: Node, agent: str, to: str, count: int, witness: Witness) -> None:
    """Send messages one after the other, each as soon as the one before was answered."""
    async with node.client() as gateway:
        client = gateway.agent(agent)
        for number in range(count):
            await send(node, client, to, f"{agent}-{number}", witness)


async def work(node: Node, agent: str, witness: Witness) -> None:
    """Take turns for ever: reply to the even, acknowledge the odd, fail every fifth."""
    name, number = agent_id(agent), 0
    async with node.client() as gateway, gateway.agent(agent).turns(f"{agent}-1", credit=3) as turns:
        async for turn in turns:
            witness.saw(
                at_ms=0,
                agent=name,
                node=node.name,
                event_id=turn.event_id,
                lease_id=turn.lease_id,
                delivery_count=turn.delivery_count,
                resumed=turn.resumed,
            )
            number += 1
            await _end(node, name, turn, number, witness)
            witness.settled(name, turn.event_id)


async def _end(node: Node, name: AgentId, turn: Turn, number: int, witness: Witness) -> None:
    if turn.event.kind == Kind.MESSAGE and number % 5 == 0:
        await turn.failed("this one fails")
    elif turn.event.kind == Kind.MESSAGE and number % 2 == 0:
        sent = await turn.reply(f"re: {turn.text}")
        key = f"reply to {turn.event_id}"
        promise = Promise(
            key=key,
            node=node.name,
            agent=name,
            event_id=sent.event_id,
            reply=True,
            repeated=sent.duplicate,
        )
        witness.heard(promise)
    else:
        await turn.ok()


@asynccontextmanager
async def at_work(witness: Witness, *agents: tuple[Node, str]) -> AsyncIterator[None]:
    """Agents that take turns in the background; whatever breaks one of them breaks the test."""
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(work(node, agent, witness)) for node, agent in agents]
        yield
        for task in working:
            task.cancel()


async def all_accepted(node: Node, count: int) -> None:
    """Wait until so much of what a node has sent was accepted."""

    async def look() -> bool:
        async with node.client() as gateway:
            found = (await gateway.status()).deliveries
        return found.get(DeliveryState.ACCEPTED, 0) + found.get(DeliveryState.PROCESSED, 0) >= count

    await until(look, REST_WITHIN_S, f"{count} deliveries of {node.name} are accepted")


async def rest(nodes: tuple[Node, ...], messages: int, within_s: float = REST_WITHIN_S) -> None:
    """Wait until everything has come to its end."""

    async def look() -> bool:
        return at_rest(nodes, messages)

    await until(look, within_s, f"{messages} messages have ended")
