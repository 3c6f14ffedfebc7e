"""Everybody on stage: the actors of each node, the extras, and the crash in the middle."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from gateway.client import AgentClient, GatewayClient
from gateway.demo.actor import BURST_KEY, Actor, Role, Stage
from gateway.demo.conversation import Conversation
from gateway.demo.extras import PLANTED, Extras, Part
from gateway.demo.limits import BURST, BURST_WORKERS, KILL_WITHIN_S, QUIET_WITHIN_S
from gateway.demo.mesh import KILLED, DemoMesh
from gateway.errors import Denied
from gateway.fleet.waiting import Condition, comes_true
from gateway.judging.witness import Promise, Refusal
from outbox.errors import UnknownRecipient
from outbox.ids import NodeId

Crash = Callable[[], Awaitable[None]]
"""Kills a node with its agents and returns when both are back."""

_TROUBLE_AT = 0.1
"""Of the play's length: early, so that the SLA of the message that waits runs out soon."""

_BURST_AT = 0.4


class Cast:
    """Plays a conversation and the extras on a mesh whose agents exist."""

    def __init__(self, conversation: Conversation, extras: Extras, mesh: DemoMesh, stage: Stage) -> None:
        self._conversation = conversation
        self._extras = extras
        self._mesh = mesh
        self._stage = stage
        roles = (*_roles(conversation), *_extra_roles(extras))
        self._actors = [Actor(role, stage) for role in roles]
        self.away_ms: int | None = None
        """How long the killed gateway was away; None until it is back."""

    @property
    def said(self) -> int:
        """Lines of the conversation that a gateway has taken."""
        return sum(actor.said for actor in self._actors)

    @property
    def lines(self) -> int:
        """Lines of the conversation."""
        return len(self._conversation.lines)

    async def play(self, snapshot: Callable[[], None], at_rest: Condition) -> bool:
        """Everything from the first line until nothing is on its way any more; False when that never came.

        ``snapshot`` is called while the killed gateway is dead. Its agents die with it, and come back with
        their sessions.
        """
        async with asyncio.TaskGroup() as tasks:
            troupes = {node: tasks.create_task(self._troupe(node)) for node in self._mesh.gateways}

            async def crash() -> None:
                died_ms = self._stage.now_ms()
                self._mesh.gateways[KILLED].kill()
                troupes[KILLED].cancel()
                await asyncio.wait((troupes[KILLED],))
                snapshot()
                await self._mesh.gateways[KILLED].start()
                self.away_ms = self._stage.now_ms() - died_ms
                troupes[KILLED] = tasks.create_task(self._troupe(KILLED))

            await self._direct(crash)
            await comes_true(self._all_said, QUIET_WITHIN_S + self._length_ms / 1000)
            rested = await comes_true(at_rest, QUIET_WITHIN_S)
            for troupe in troupes.values():
                troupe.cancel()
        return rested

    @property
    def _length_ms(self) -> int:
        return self._conversation.lines[-1].at_ms

    async def _all_said(self) -> bool:
        self._mesh.check()
        return self.said == self.lines

    async def _troupe(self, node: NodeId) -> None:
        """The agents of one node, each with a connection and a token of its own."""
        async with asyncio.TaskGroup() as tasks:
            for actor in self._actors:
                if actor.role.node == node:
                    tasks.create_task(self._play(actor))

    async def _play(self, actor: Actor) -> None:
        home = self._mesh.gateways[actor.role.node].home
        async with GatewayClient.of_home(home, actor.role.name) as gateway:
            await actor.play(gateway.agent(actor.role.name))

    async def _direct(self, crash: Crash) -> None:
        """Plant the trouble, then the burst, and let the crash fall into it."""
        herald = self._extras.names[Part.HERALD]
        home = self._mesh.gateways[self._extras.homes[Part.HERALD]].home
        async with GatewayClient.of_home(home, herald) as gateway:
            agent = gateway.agent(herald)
            await self._pause_until(int(self._length_ms * _TROUBLE_AT))
            for trouble, plan in PLANTED.items():
                await self._send(agent, trouble, self._extras.names[plan.part], plan.text)
            await self._send_to_nobody(agent)
            await self._pause_until(int(self._length_ms * _BURST_AT))
            async with asyncio.TaskGroup() as senders:
                left = iter(enumerate(self._extras.burst, 1))
                for _ in range(BURST_WORKERS):
                    senders.create_task(self._send_burst(agent, left))
                await comes_true(self._burst_arrives, KILL_WITHIN_S)
                await crash()

    async def _pause_until(self, at_ms: int) -> None:
        await asyncio.sleep(max(0, at_ms - self._stage.now_ms()) / 1000)

    async def _burst_arrives(self) -> bool:
        """The porter has the middle of the burst: some turns are done, some in hand, some on their way."""
        return self._stage.witness.turns_of(self._extras.names[Part.PORTER]) >= BURST // 2

    async def _send_burst(self, agent: AgentClient, left: Iterator[tuple[int, str]]) -> None:
        for number, text in left:
            await self._send(agent, f"{BURST_KEY}{number}", self._extras.names[Part.PORTER], text)

    async def _send(self, agent: AgentClient, key: str, to: str, text: str) -> None:
        sent = await agent.send(to, text, id=key)
        self._stage.witness.heard(
            Promise(
                key=str(key),
                node=self._extras.homes[Part.HERALD],
                agent=agent.name,
                event_id=sent.event_id,
                reply=False,
                repeated=sent.duplicate,
            )
        )

    async def _send_to_nobody(self, agent: AgentClient) -> None:
        try:
            await self._send(agent, "nobody", self._extras.misspelt, "Did you get my last message?")
        except Denied as refusal:
            if refusal.wire_code != UnknownRecipient.code:
                raise
            self._stage.witness.refused(
                Refusal(key="nobody", code=refusal.wire_code, what=str(refusal), hint=refusal.hint)
            )


def _roles(conversation: Conversation) -> Iterator[Role]:
    replies = conversation.replies()
    for name, node in conversation.homes.items():
        lines = tuple(line for line in conversation.lines if line.sender == name and line.reply_to is None)
        answers = {
            question: mine
            for question, lines_ in replies.items()
            if (mine := tuple(line for line in lines_ if line.sender == name))
        }
        yield Role(name=name, node=node, lines=lines, answers=answers)


def _extra_roles(extras: Extras) -> Iterator[Role]:
    """The herald and the porter work, the clumsy one fails; the others take no turns at all."""
    for part in (Part.HERALD, Part.PORTER, Part.CLUMSY):
        yield Role(name=extras.names[part], node=extras.homes[part], fails=part is Part.CLUMSY)
