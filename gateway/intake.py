"""Inputs that wait for the next tick: bounded, in order, taken in pieces."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from gateway.engine.inputs import Input
from gateway.errors import Busy
from gateway.gathering import gathered
from gateway.limits import QUEUE_INPUTS_MAX, TICK_INPUTS_MAX


class Intake:
    """Lives on one event loop; one takes, everybody puts."""

    def __init__(self) -> None:
        self._inputs: deque[Input] = deque()
        self._work = asyncio.Event()
        self._space = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._inputs)

    def put(self, item: Input) -> None:
        """Add one, whatever the bound: it is the caller's to ask for room."""
        self._inputs.append(item)
        self._work.set()

    def need_room(self, inputs: int = 1) -> None:
        """Raises Busy unless so many may be put."""
        if len(self._inputs) + inputs > QUEUE_INPUTS_MAX:
            raise Busy("too many requests wait for the disk", hint="try again in a moment")

    async def room(self) -> None:
        """Wait until one may be put."""
        while len(self._inputs) >= QUEUE_INPUTS_MAX:
            self._space.clear()
            await self._space.wait()

    async def wait(self, timeout_s: float | None) -> None:
        """Wait until there is one, at most so long."""
        self._work.clear()
        timer = None
        if timeout_s is not None:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._work.set)
        try:
            await self._work.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def gather(self) -> None:
        """Let arrive what came while a commit held the loop: it has some turns to go from its socket.

        Without that each of them would get a commit of its own, and batches would not grow with the load.
        """
        await gathered(self._inputs, TICK_INPUTS_MAX)

    def take(self) -> list[Input]:
        """A tick's worth, oldest first."""
        batch = [self._inputs.popleft() for _ in range(min(len(self._inputs), TICK_INPUTS_MAX))]
        self._space.set()
        return batch

    def put_back(self, items: Iterable[Input]) -> None:
        """What was taken and is still to be done stands before all that came since."""
        self._inputs.extendleft(reversed([*items]))
        if self._inputs:
            self._work.set()

    def withdraw(self, unwanted: Callable[[Input], bool]) -> list[Input]:
        """Take out those of some kind."""
        waiting, self._inputs = self._inputs, deque()
        out: list[Input] = []
        for item in waiting:
            (out if unwanted(item) else self._inputs).append(item)
        return out
