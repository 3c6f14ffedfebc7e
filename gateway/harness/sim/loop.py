"""The event loop of one simulated process. To kill the process is to stop running its callbacks.

The code under test uses plain asyncio; a loop is all that asyncio asks of the world. Tasks hash by a serial
number, since asyncio keeps them in sets and the order of a set must not depend on addresses in memory.
"""

import asyncio
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

from gateway.harness.sim.timeline import SimHandle, Stepped, Timeline

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_LIMBO_ROUNDS = 20
"""Cancellations that a dying task may outlive: each ``finally`` that waits takes one."""


class ProcessDied(BaseException):
    """Raised where a simulated process is killed; nothing in the product may catch it."""


class SimTask(asyncio.Task[_T]):
    """A task whose hash is the order of its making."""

    _loop: "SimLoop"
    _number = 0

    def __new__(cls, *_args: object, loop: "SimLoop", **_rest: object) -> "SimTask[_T]":
        """Number it before asyncio puts it into a set."""
        task = super().__new__(cls)
        task._number = loop.timeline.serial()
        return task

    def __hash__(self) -> int:
        return self._number


def make_loop(timeline: Timeline, on_error: Callable[[str, BaseException | None], None]) -> "SimLoop":
    """A loop for a new process."""
    return SimLoop(timeline, on_error)  # type: ignore[abstract]  # files, sockets and threads do not exist here


class SimLoop(Stepped):
    """What asyncio needs of a loop, over virtual time."""

    def __init__(self, timeline: Timeline, on_error: Callable[[str, BaseException | None], None]) -> None:
        self.timeline = timeline
        self.died_at = ""
        """The named place where it was killed."""
        self.on_death: Callable[[], None] = lambda: None
        self.fatal: Callable[[str], bool] | None = None
        """Whether passing this named place kills the process."""
        self._on_error = on_error
        self.backlog = deque()
        self._tasks: dict[int, SimTask[Any]] = {}
        self._limbo: deque[SimHandle] = deque()
        self._soon = timeline.soon

    # --- what the world does to it

    def passes(self, place: str) -> None:
        """The process passes a named place. Raises ProcessDied where that is fatal."""
        if self.fatal is not None and not self.dead and self.fatal(place):
            self.doomed = True
            self.died_at = place
            raise ProcessDied(place)

    def stepped(self) -> None:
        """Die if this was the last one."""
        if self.steps_left is not None:
            self.steps_left -= 1
            self.doomed = self.doomed or self.steps_left < 0
        if self.doomed and not self.dead:
            self.on_death()

    def stop_for(self, us: int) -> None:
        """Run nothing for a while (SIGSTOP, or a disk that is slow)."""
        self.busy_until_us = max(self.busy_until_us, self.timeline.now_us) + us

    def kill(self) -> None:
        """The process is gone. What its tasks still do on the way out reaches nobody."""
        try:
            self._wind_up()
        finally:
            self.timeline.rest()

    def _wind_up(self) -> None:
        self.dead = True
        self._soon = self._limbo.append
        self._limbo.extend(self.timeline.take(self))
        for _ in range(_LIMBO_ROUNDS):
            for task in list(self._tasks.values()):
                task.cancel()
            while self._limbo:
                handle = self._limbo.popleft()
                if not (handle.cancelled() or handle.timed):
                    self.timeline.run(handle)
            if not self._tasks:
                return
        raise AssertionError(f"a task does not end: {next(iter(self._tasks.values()))}")

    # --- what asyncio asks of it

    def time(self) -> float:
        """Seconds since the world began."""
        return self.timeline.now_us / 1e6

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> Handle:
        """Run it next."""
        handle = SimHandle(callback, args, self, context)
        self._soon(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> TimerHandle:
        """Run it after some seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> TimerHandle:
        """Run it then; the dead wait for ever."""
        handle = SimHandle(callback, args, self, context, timed=True)
        if not self.dead:
            self.timeline.at(round(when * 1e6), handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        """A task of this loop, known until it has ended."""
        task: SimTask[_T] = SimTask(coro, loop=self, name=name, context=context)
        self._tasks[hash(task)] = task
        task.add_done_callback(self._ended)
        return task

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Until it is killed."""
        return not self.dead

    def is_closed(self) -> bool:
        """Once it is killed."""
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Nobody caught it: a finding, unless the process was dead already."""
        error = context.get("exception")
        if not self.dead and not self.doomed and not isinstance(error, ProcessDied):
            self._on_error(str(context.get("message")), error)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(hash(task), None)
