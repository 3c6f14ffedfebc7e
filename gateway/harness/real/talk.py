"""The load: every node's agents write to agents anywhere, at a steady rate, with bursts between."""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.harness.real.habit import Habit, agent_of
from gateway.harness.real.limits import (
    BRIEF,
    BRIEF_MS,
    BRIEF_SHARE,
    BURST,
    BURST_EVERY_MS,
    BURST_WORKERS,
    PAUSE_MS,
)
from gateway.harness.sim.dice import Dice
from gateway.home import Home
from gateway.judging.witness import Promise, Refusal, Witness
from outbox.ids import NodeId


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send."""

    key: str
    at_ms: int
    """Since the start of the talk."""
    sender: str
    to: str
    brief: bool


def steady(
    seed: int, node: NodeId, nodes: Sequence[NodeId], duration_ms: int, rate: float, *, series: str = ""
) -> list[Line]:
    """What the agents of one node say, in order: its share of ``rate`` messages a second of the whole mesh.

    A ``series`` of its own has other keys and says other things.
    """
    dice = Dice(seed, f"talk {node}{series}")
    mean_us = max(1, int(1_000_000 * len(nodes) / rate))
    found: list[Line] = []
    at_us = 0
    while (at_us := at_us + dice.spaced(mean_us)) < duration_ms * 1_000:
        found.append(_line(dice, node, nodes, at_us // 1_000, f"{len(found)}{series}"))
    return found


def lines(seed: int, node: NodeId, nodes: Sequence[NodeId], duration_ms: int, rate: float) -> list[Line]:
    """The same, and their bursts."""
    found = steady(seed, node, nodes, duration_ms, rate)
    dice = Dice(seed, f"bursts {node}")
    turn = nodes.index(node)
    for number, at_ms in enumerate(range(BURST_EVERY_MS // 2, duration_ms, BURST_EVERY_MS)):
        if number % len(nodes) == turn:
            found += [_line(dice, node, nodes, at_ms, str(len(found) + extra)) for extra in range(BURST)]
    return sorted(found, key=lambda line: (line.at_ms, line.key))


def _line(dice: Dice, node: NodeId, nodes: Sequence[NodeId], at_ms: int, number: str) -> Line:
    brief = dice.chance(BRIEF_SHARE)
    return Line(
        key=f"{BRIEF if brief else 'line'}-{node}-{number}",
        at_ms=at_ms,
        sender=agent_of(dice.among(tuple(Habit)), node),
        to=agent_of(dice.among(tuple(Habit)), dice.among(nodes)),
        brief=brief,
    )


class Talk:
    """The senders of one node."""

    def __init__(
        self, node: NodeId, home: Home, lines: Sequence[Line], witness: Witness, clock: Clock
    ) -> None:
        self.node = node
        self.left = len(lines)
        """Sends that have no answer yet."""
        self._home = home
        self._lines = lines
        self._witness = witness
        self._clock = clock

    async def run(self, started_ms: int) -> None:
        """Say everything; returns when each line has its answer."""
        left = iter(self._lines)
        async with GatewayClient.of_home(self._home) as gateway, asyncio.TaskGroup() as tasks:
            for _ in range(BURST_WORKERS):
                tasks.create_task(self._say_all(gateway, left, started_ms))

    async def _say_all(self, gateway: GatewayClient, left: Iterator[Line], started_ms: int) -> None:
        for line in left:
            await asyncio.sleep(max(0, started_ms + line.at_ms - self._clock.mono_ms()) / 1000)
            await self._insist(gateway, line)
            self.left -= 1

    async def _insist(self, gateway: GatewayClient, line: Line) -> None:
        """Under one id until the gateway has answered."""
        while True:
            try:
                return await self._say(gateway, line)
            except (Unreachable, TimedOut):
                pass
            except Denied as refused:
                if not refused.is_retryable:
                    return self._refused(line, refused)
            await asyncio.sleep(PAUSE_MS / 1000)

    async def _say(self, gateway: GatewayClient, line: Line) -> None:
        sent = await gateway.agent(line.sender).send(
            line.to, f"message {line.key}", id=line.key, expires_in_ms=BRIEF_MS if line.brief else None
        )
        self._witness.heard(
            Promise(
                key=line.key,
                node=self.node,
                agent=gateway.agent(line.sender).name,
                event_id=sent.event_id,
                reply=False,
                repeated=sent.duplicate,
            )
        )

    def _refused(self, line: Line, refused: Denied) -> None:
        self._witness.refused(
            Refusal(key=line.key, code=refused.wire_code, what=str(refused), hint=refused.hint)
        )
