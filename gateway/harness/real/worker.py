"""One agent at work: takes turns for the whole run by the habit of its kind, and writes down what it saw."""

import asyncio

from gateway.client import AgentClient, GatewayClient, Turn, Turns
from gateway.clock import Clock
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.harness.real.habit import Deed, Habit, agent_of, deed
from gateway.harness.real.limits import CREDIT, PAUSE_MS, SLOW_AGENT_MS
from gateway.harness.sim.dice import Dice
from gateway.home import Home
from gateway.judging.witness import Promise, Witness
from outbox.ids import NodeId
from outbox.kinds import Kind


class Worker:
    """Lives until cancelled; dies and comes back if that is its habit."""

    def __init__(
        self, habit: Habit, node: NodeId, home: Home, *, seed: int, witness: Witness, clock: Clock
    ) -> None:
        self.name = agent_of(habit, node)
        self.behaved = False
        """Set when the faults are over."""
        self._habit = habit
        self._node = node
        self._home = home
        self._dice = Dice(seed, f"agent {self.name}")
        self._witness = witness
        self._clock = clock
        self._life = 1

    async def run(self) -> None:
        """One life after the other."""
        while True:
            await self._once()
            if self._dice.chance(0.5):
                self._life += 1
            await asyncio.sleep(PAUSE_MS / 1000)

    async def _once(self) -> None:
        """One life, in a task of its own: a task group that fails may swallow a cancellation."""
        life = asyncio.ensure_future(self._connected())
        try:
            await asyncio.shield(life)
        finally:
            life.cancel()
            await asyncio.wait({life})

    async def _connected(self) -> None:
        async with GatewayClient.of_home(self._home, self.name) as gateway:
            await self._live(gateway.agent(self.name))

    async def _live(self, agent: AgentClient) -> None:
        """Until death, or until the gateway has had enough for a while."""
        waiting: asyncio.Queue[Turn] = asyncio.Queue(CREDIT)
        try:
            async with (
                agent.turns(f"{self.name}-{self._life}", credit=CREDIT) as turns,
                asyncio.TaskGroup() as tasks,
            ):
                taking = tasks.create_task(self._take(turns, waiting))
                await self._work(waiting)
                taking.cancel()
        except* Denied as refused:
            if not all(error.is_retryable for error in refused.exceptions if isinstance(error, Denied)):
                raise

    async def _take(self, turns: Turns, waiting: asyncio.Queue[Turn]) -> None:
        """Note each turn when it comes, however long the ones before it take."""
        async for turn in turns:
            self._witness.saw(
                at_ms=self._clock.wall_ms(),
                agent=self.name,
                node=self._node,
                event_id=turn.event_id,
                lease_id=turn.lease_id,
                delivery_count=turn.delivery_count,
                resumed=turn.resumed,
            )
            await waiting.put(turn)

    async def _work(self, waiting: asyncio.Queue[Turn]) -> None:
        """One turn after the other, until death."""
        while True:
            turn = await waiting.get()
            what = deed(
                self._habit,
                turn.delivery_count,
                self._dice.fraction(),
                message=turn.event.kind == Kind.MESSAGE,
                behaved=self.behaved,
            )
            if what is Deed.DIE:
                return
            if self._habit is Habit.SLOW and not self.behaved:
                await asyncio.sleep(self._dice.between(0, SLOW_AGENT_MS) / 1000)
            await self._insist(turn, what)

    async def _insist(self, turn: Turn, what: Deed) -> None:
        """Until the gateway has answered; a lease that ran out is an answer."""
        while True:
            try:
                await self._do(turn, what)
            except (Unreachable, TimedOut):
                pass
            except Denied as refused:
                if not refused.is_retryable:
                    return
            else:
                return
            await asyncio.sleep(PAUSE_MS / 1000)

    async def _do(self, turn: Turn, what: Deed) -> None:
        match what:
            case Deed.REPLY:
                await self._reply(turn)
            case Deed.OK:
                await turn.ok()
                self._witness.settled(self.name, turn.event_id)
            case Deed.FAIL:
                await turn.failed("this one fails")
                self._witness.settled(self.name, turn.event_id)
            case Deed.NACK:
                self._witness.gives_back(self.name, turn.event_id, turn.lease_id)
                await turn.nack(PAUSE_MS)
            case Deed.IGNORE | Deed.DIE:
                return

    async def _reply(self, turn: Turn) -> None:
        key = f"re-{turn.event_id}-{turn.delivery_count}"
        sent = await turn.reply(f"re: {turn.text}", id=key)
        self._witness.settled(self.name, turn.event_id)
        self._witness.heard(
            Promise(
                key=key,
                node=self._node,
                agent=self.name,
                event_id=sent.event_id,
                reply=True,
                repeated=sent.duplicate,
            )
        )
