"""Inputs that wait for the next tick: bounded, taken in pieces, each in the order of those of its own kind.

What is asked here stands in one line, and goes before what peers bring (``gateway.brought``).

Most of them make a tick due. What may wait (``gateway.patience``) does so only when it has waited for
``LINGER_MS``; whatever makes a tick due before that takes it along, in the order in which all came.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from gateway.brought import Brought, bringer
from gateway.engine.inputs import Input
from gateway.errors import Busy
from gateway.gathering import gathered
from gateway.limits import LINGER_MS, QUEUE_INPUTS_MAX, TICK_INPUTS_MAX
from gateway.patience import may_wait
from outbox.ids import NodeId


class Intake:
    """Lives on one event loop; one takes, everybody puts."""

    def __init__(self) -> None:
        self._inputs: deque[Input] = deque()
        self._brought = Brought()
        self._due = asyncio.Event()
        self._lingering: asyncio.TimerHandle | None = None
        """Makes what may wait due; none while nothing waits that may, or a tick is due anyway."""
        self._space = asyncio.Event()

    def __len__(self) -> int:
        return len(self._inputs) + len(self._brought)

    def put(self, item: Input) -> None:
        """Add one, whatever the bound: it is the caller's to ask for room."""
        peer = bringer(item)
        if peer is None:
            self._inputs.append(item)
        else:
            self._brought.put(peer, item)
        if self._due.is_set():
            return
        if not may_wait(item):
            self._due.set()
        elif self._lingering is None:
            self._lingering = asyncio.get_running_loop().call_later(LINGER_MS / 1000, self._due.set)

    def need_room(self, inputs: int = 1) -> None:
        """Raises Busy unless so many may be put."""
        if len(self._inputs) + inputs > QUEUE_INPUTS_MAX:
            raise Busy("too many requests wait for the disk", hint="try again in a moment")

    async def room(self) -> None:
        """Wait until one may be put."""
        await self._until(lambda: len(self._inputs) < QUEUE_INPUTS_MAX)

    async def room_of(self, peer: NodeId) -> None:
        """Wait until one may be put that a peer brings."""
        await self._until(lambda: not self._brought.is_full(peer))

    async def _until(self, there_is_room: Callable[[], bool]) -> None:
        while not there_is_room():
            self._space.clear()
            await self._space.wait()

    async def due(self, timeout_s: float | None) -> None:
        """Wait until something here asks for a tick, at most so long."""
        if self._due.is_set():
            return
        timer = None
        if timeout_s is not None:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._due.set)
        try:
            await self._due.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def gather(self) -> None:
        """Let arrive what came while a commit held the loop: it has some turns to go from its socket.

        Without that each of them would get a commit of its own, and batches would not grow with the load.
        """
        await gathered(self, TICK_INPUTS_MAX)

    def take(self, *, apart: bool = False) -> list[Input]:
        """A tick's worth, requests first; for what is left a tick is due, whatever it is.

        With ``apart`` what peers bring waits while there are requests.
        """
        batch = [self._inputs.popleft() for _ in range(min(len(self._inputs), TICK_INPUTS_MAX))]
        if not (apart and batch):
            batch += self._brought.take(asked=bool(batch))
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if not len(self):
            self._due.clear()
        self._space.set()
        return batch

    def put_back(self, items: Iterable[Input]) -> None:
        """What was taken and is still to be done stands before all that came since."""
        self._inputs.extendleft(reversed([*items]))
        if self._inputs:
            self._due.set()

    def withdraw(self, unwanted: Callable[[Input], bool]) -> list[Input]:
        """Take out those of some kind."""
        waiting, self._inputs = self._inputs, deque()
        out: list[Input] = []
        for item in waiting:
            (out if unwanted(item) else self._inputs).append(item)
        return out + self._brought.withdraw(unwanted)
