"""One gateway under supervision: taken down and brought up on purpose, revived when it ended by itself."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.clock import Clock
from gateway.crashpoint import VARIABLE
from gateway.fleet.errors import FleetFailed
from gateway.fleet.limits import LOOK_EVERY_S
from gateway.fleet.process import GatewayProcess
from gateway.fleet.waiting import comes_true
from gateway.harness.real.equipment import faketime
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.limits import EXPLAINS_MS, FAILED_STATUS, REVIVE_PAUSE_S, REVIVES_MAX
from gateway.harness.real.notes import End, Mark
from gateway.judging.lives import Life
from outbox.ids import NodeId
from outbox.reader import JournalReader


class Station:
    """Knows whether its gateway is meant to run."""

    def __init__(
        self,
        process: GatewayProcess,
        clock: Clock,
        tell: Callable[[str], None],
        moment: Callable[[], int] = int,
        *,
        aside: bool = False,
    ) -> None:
        """``moment`` numbers what happens among what agents see. ``aside``: a process of its own writes its
        journal."""
        self.process = process
        self.ends: list[End] = []
        self.marks: list[Mark] = []
        self.starts = 0
        self._deaths = {-signal.SIGKILL, FAILED_STATUS} if aside else {-signal.SIGKILL}
        """How it may end at a crash point: of its own, or because the process of its journal died there."""
        self._clock = clock
        self._tell = tell
        self._moment = moment
        self._away = 0
        """How many faults keep it down."""
        self._turn = asyncio.Lock()
        self._trouble: FaultClass | None = None
        self._explains_until_ms: int | None = None
        self._clock_s = 0
        self._lives: list[Life] = []
        self._began_ms: int | None = clock.wall_ms()
        """Of the process that runs: the first is started by somebody else, after this."""

    @property
    def node(self) -> NodeId:
        """Whose it is."""
        return self.process.node

    @property
    def away(self) -> bool:
        """Whether it is meant to be down."""
        return self._away > 0

    @property
    def lives(self) -> list[Life]:
        """All its processes so far."""
        if self._began_ms is None:
            return self._lives
        return [*self._lives, Life(node=self.node, began_ms=self._began_ms)]

    @contextmanager
    def troubled(self, fault: FaultClass) -> Iterator[None]:
        """While in here, and a little longer, this is what an end is explained by."""
        self._trouble, self._explains_until_ms = fault, None
        try:
            yield
        finally:
            self._explains_until_ms = self._clock.mono_ms() + EXPLAINS_MS

    def off_by(self, seconds: int) -> None:
        """From its next start on its clock is so far off."""
        self._clock_s = seconds

    async def down(self, *, orderly: bool = False) -> None:
        """Stop it and keep it down until ``up``: by SIGKILL, or by SIGTERM."""
        self._away += 1
        async with self._turn:
            if self.process.pid is not None:
                await self._take_down(orderly=orderly)

    async def up(self) -> None:
        """One reason less to be down; start it when none is left. Raises FleetFailed."""
        self._away -= 1
        async with self._turn:
            if not self._away and self.process.pid is None:
                await self._start()

    async def again(self, *, orderly: bool) -> None:
        """Stop and start it, unless it is down. Raises FleetFailed."""
        if not self.away:
            await self.down(orderly=orderly)
            await self.up()

    async def crash(self, point: str, within_s: float) -> bool:
        """Let it die at a crash point, or by SIGKILL when it does not pass there in time, and start it again.

        Returns whether it died there. Raises FleetFailed.
        """
        self._away += 1
        async with self._turn:
            if self.process.pid is not None:
                await self._take_down(orderly=False)
            self._begins()
            self.process.launch({**self._clock_environ(), VARIABLE: point})
            died = await comes_true(self._is_dead, within_s)
            if died and self.process.ended not in self._deaths:
                self._note_end()
            await self._take_down(orderly=False)
        await self.up()
        return died

    async def _is_dead(self) -> bool:
        return self.process.ended is not None

    async def watch(self) -> None:
        """Revive it whenever it has ended by itself, until cancelled. Raises FleetFailed."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            async with self._turn:
                if not self._away and self.process.ended is not None:
                    self._note_end()
                    await self._start()

    async def _take_down(self, *, orderly: bool) -> None:
        if orderly:
            await self.process.stop()
        else:
            self.process.kill()
        self._is_over()
        self.marks.append(await asyncio.to_thread(self._mark))

    async def _start(self) -> None:
        for _ in range(REVIVES_MAX):
            try:
                self._begins()
                await self.process.start(self._clock_environ())
            except FleetFailed:
                if self.process.ended is None:
                    raise
                self._note_end()
                await asyncio.sleep(REVIVE_PAUSE_S)
            else:
                self.starts += 1
                return
        raise FleetFailed(f"{self.node} did not come up in {REVIVES_MAX} starts", hint="see its log")

    def _begins(self) -> None:
        self._began_ms = self._clock.wall_ms()

    def _is_over(self) -> None:
        if self._began_ms is not None:
            ended_ms = self._clock.wall_ms()
            self._lives.append(Life(node=self.node, began_ms=self._began_ms, ended_ms=ended_ms))
        self._began_ms = None

    def _note_end(self) -> None:
        self._is_over()
        status = self.process.ended
        assert status is not None
        until_ms = self._explains_until_ms
        over = until_ms is not None and self._clock.mono_ms() > until_ms
        trouble = None if over else self._trouble
        self.ends.append(End(node=self.node, status=status, trouble=trouble))
        self._tell(f"{self.node} ended with status {status} ({trouble or 'nothing explains it'})")

    def _mark(self) -> Mark:
        reader = JournalReader.open(self.process.home.journal)
        try:
            return Mark(node=self.node, order=self._moment(), head=reader.head(), cursors=reader.cursors())
        finally:
            reader.close()

    def _clock_environ(self) -> dict[str, str]:
        library = faketime()
        if not self._clock_s or library is None:
            return {}
        return {
            "LD_PRELOAD": library,
            "FAKETIME": f"{self._clock_s:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
