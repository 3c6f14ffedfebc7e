"""One agent of the demo: listens to its turns, answers them, and says its lines. A shell over the client."""

import asyncio
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.client import AgentClient, Turn, Turns
from gateway.clock import Clock
from gateway.demo.conversation import Line
from gateway.demo.extras import FAILURE
from gateway.demo.limits import BURST_REPLY_EVERY, CREDIT, HELD_MS_MAX
from gateway.demo.speech import Agenda, Question, Speech, number_of, speech_of
from gateway.judging.witness import Promise, Witness
from outbox.ids import AgentId, NodeId

BURST_KEY = "burst-"
_ANSWERED_AFTER_MS = 1_500
"""Answers to the burst wait so long, so that the crash finds turns in somebody's hands."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent does in the play."""

    name: AgentId
    node: NodeId
    lines: tuple[Line, ...] = ()
    """What it says unasked."""
    answers: dict[int, tuple[Line, ...]] = {}
    """Its answers to the lines of others."""
    fails: bool = False
    """Fails every turn."""


class Stage(NamedTuple):
    """What all actors share."""

    clock: Clock
    witness: Witness
    started_ms: int
    """Monotonic."""

    def now_ms(self) -> int:
        """Since the start of the play."""
        return self.clock.mono_ms() - self.started_ms


class Actor:
    """Survives the death of its process: what it had to say is still on its agenda when it plays again."""

    def __init__(self, role: Role, stage: Stage) -> None:
        self.role = role
        self.said = 0
        self._stage = stage
        self._agenda = Agenda()
        self._news = asyncio.Event()
        self._in_hand: dict[str, Turn] = {}
        """Turns whose answer is on the agenda, by its key."""
        for line in role.lines:
            self._agenda.add(speech_of(line))

    async def play(self, agent: AgentClient) -> None:
        """Take turns and say lines until cancelled; the session is the same each time."""
        self._agenda.forget_turns()
        self._in_hand.clear()
        if self._agenda.begun is not None:
            await self._say(agent, self._agenda.begun)
        async with (
            agent.turns(f"{self.role.name}-demo", credit=CREDIT) as turns,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._listen(turns))
            tasks.create_task(self._speak(agent, turns))

    async def _listen(self, turns: Turns) -> None:
        async for turn in turns:
            self._stage.witness.saw(
                at_ms=self._stage.clock.wall_ms(),
                agent=self.role.name,
                node=self.role.node,
                event_id=turn.event_id,
                lease_id=turn.lease_id,
                delivery_count=turn.delivery_count,
                resumed=turn.resumed,
            )
            await self._take(turn)

    async def _take(self, turn: Turn) -> None:
        answers = self._answers(turn)
        if self.role.fails:
            await turn.failed(FAILURE)
        elif answers and answers[0].at_ms - self._stage.now_ms() <= HELD_MS_MAX:
            first = answers.pop(0)
            self._in_hand[first.key] = turn
            self._agenda.add(replace(first, question=Question(turn.event_id, turn.lease_id)))
            self._later(answers, turn)
            return
        else:
            await turn.ok()
        self._stage.witness.settled(self.role.name, turn.event_id)
        self._later(answers, turn)

    def _later(self, answers: list[Speech], turn: Turn) -> None:
        for answer in answers:
            self._agenda.add(replace(answer, question=Question(turn.event_id, None)))
        self._news.set()

    def _answers(self, turn: Turn) -> list[Speech]:
        key, sender = turn.event.idempotency_key or "", turn.sender
        number = number_of(key)
        if number is not None:
            return [speech_of(line) for line in self.role.answers.get(number, ())]
        count = key.removeprefix(BURST_KEY)
        if key.startswith(BURST_KEY) and sender is not None and int(count) % BURST_REPLY_EVERY == 0:
            at_ms = self._stage.now_ms() + _ANSWERED_AFTER_MS
            return [Speech(key=f"re-{key}", to=sender, text=f"{count} readings noted", at_ms=at_ms)]
        return []

    async def _speak(self, agent: AgentClient, turns: Turns) -> None:
        while True:
            await self._until_due()
            speech = self._agenda.begin()
            await self._say(agent, speech)
            turn = self._in_hand.pop(speech.key, None)
            if turn is not None:
                turns.finished(turn)

    async def _until_due(self) -> None:
        while (due_ms := self._agenda.next_ms()) is None or due_ms > self._stage.now_ms():
            self._news.clear()
            wait_s = None if due_ms is None else (due_ms - self._stage.now_ms()) / 1000
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                return

    async def _say(self, agent: AgentClient, speech: Speech) -> None:
        question = speech.question
        if question is None:
            sent = await agent.send(speech.to, speech.text, id=speech.key)
        else:
            sent = await agent.reply(
                question.event_id, {"text": speech.text}, lease_id=question.lease_id, id=speech.key
            )
            if question.lease_id is not None:
                self._stage.witness.settled(self.role.name, question.event_id)
        self._agenda.done()
        self.said += number_of(speech.key) is not None
        self._stage.witness.heard(
            Promise(
                key=speech.key,
                node=self.role.node,
                agent=self.role.name,
                event_id=sent.event_id,
                reply=question is not None,
                repeated=sent.duplicate,
            )
        )
