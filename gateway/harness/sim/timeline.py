"""Virtual time, shared by all processes of a world: what is next to run, and when.

Time passes only when nothing can run. Whatever is due runs in the order in which it was asked for, so the
same questions always get the same answers.
"""

from abc import abstractmethod
from asyncio import AbstractEventLoop, TimerHandle
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

MOMENT_STEPS_MAX = 100_000
"""Callbacks that may run while no time passes: a world takes about as many in all its life, and its busiest
moment some hundreds."""


class TimeStandsStill(Exception):
    """Something is always due now: a process that does nothing else, and would take a core for ever."""


class SimHandle(TimerHandle):
    """A callback that waits, with a time or without; a million of them are made in a world."""

    __slots__ = ("loop",)

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: "Stepped",
        context: Context | None = None,
        *,
        timed: bool = False,
    ) -> None:
        # In place of TimerHandle.__init__: what this leaves out is for loops in debug mode.
        self.loop = loop
        self._context = context if context is not None else copy_context()
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._scheduled = timed

    def cancel(self) -> None:
        """It is skipped when its time comes."""
        self._cancelled = True

    @property
    def timed(self) -> bool:
        """Whether it waits for its time."""
        return self._scheduled

    def run(self) -> None:
        """Call it; what nobody catches goes to the loop."""
        try:
            self._context.run(self._callback, *self._args)
        except BaseException as error:  # noqa: BLE001 - as every event loop; a death is one, too
            what = f"exception in callback {self._callback!r}"
            self.loop.call_exception_handler({"message": what, "exception": error})


class Stepped(AbstractEventLoop):
    """An event loop that the timeline steps."""

    dead = False
    busy_until_us = 0
    """Nothing runs before: the process is stopped, or waits for the disk."""
    backlog: deque[SimHandle]
    """What should have run meanwhile, in order."""
    steps_left: int | None = None
    """The process is killed after so many more callbacks."""
    doomed = False
    """The process is killed as soon as the callback that runs now has ended."""

    @abstractmethod
    def stepped(self) -> None:
        """One of its callbacks has run, and its end may have come."""


class Timeline:
    """One queue of callbacks for all event loops of a world. Times are microseconds since its beginning."""

    def __init__(self) -> None:
        self.now_us = 0
        self.steps = 0
        """Callbacks that have run."""
        self._steps_max = MOMENT_STEPS_MAX
        """So many will have run when this moment has lasted too long."""
        self.serial: Callable[[], int] = count(1).__next__
        """The next number: what is made later has a higher one."""
        self._ready: deque[SimHandle] = deque()
        self.soon: Callable[[SimHandle], None] = self._ready.append
        """Run it at this very moment, after what is ready already."""
        self._later: list[tuple[int, int, Stepped, SimHandle | None]] = []
        self._running: Stepped | None = None

    def at(self, when_us: int, handle: SimHandle) -> None:
        """Run it then."""
        heappush(self._later, (max(when_us, self.now_us), self.serial(), handle.loop, handle))

    def take(self, loop: Stepped) -> list[SimHandle]:
        """Take back everything that one loop has waiting, in order."""
        mine = [handle for handle in self._ready if handle.loop is loop]
        others = [handle for handle in self._ready if handle.loop is not loop]
        self._ready.clear()
        self._ready.extend(others)
        mine += loop.backlog
        loop.backlog.clear()
        waiting = (item for item in sorted(self._later, key=_order) if item[2] is loop)
        mine += [handle for _, _, _, handle in waiting if handle is not None]
        self._later[:] = [item for item in self._later if item[2] is not loop]
        heapify(self._later)
        return mine

    def run_until(self, end_us: int) -> None:
        """Let time pass up to ``end_us`` and run what is due by then.

        Raises TimeStandsStill when that does not end.
        """
        ready, later = self._ready, self._later
        try:
            while ready or (later and later[0][0] <= end_us):
                if not ready:
                    self._pass()
                    continue
                if self.steps >= self._steps_max:
                    raise TimeStandsStill(f"at {self.now_us / 1e6:.3f} s something is always due at once")
                handle = ready.popleft()
                loop = handle.loop
                if loop.dead or handle._cancelled:  # noqa: SLF001 - as every event loop; a million times a world
                    continue
                if loop.backlog or loop.busy_until_us > self.now_us:
                    self._hold(loop, handle)
                    continue
                self.steps += 1
                self.run(handle)
                if loop.doomed or loop.steps_left is not None:
                    loop.stepped()
            self.now_us = max(self.now_us, end_us)
        finally:
            self.rest()

    def rest(self) -> None:
        """No loop runs now."""
        _set_running_loop(None)
        self._running = None

    def _pass(self) -> None:
        """Go to the next moment at which something is due."""
        before_us = self.now_us
        self.now_us, _, loop, handle = heappop(self._later)
        if self.now_us > before_us:
            self._steps_max = self.steps + MOMENT_STEPS_MAX
        if handle is None:
            self._wake(loop)
        elif not handle.cancelled():
            self._ready.append(handle)

    def _hold(self, loop: Stepped, handle: SimHandle) -> None:
        """Its loop stands still: the callback waits in the backlog."""
        if not loop.backlog:
            self._wake_later(loop)
        loop.backlog.append(handle)

    def run(self, handle: SimHandle) -> None:
        """Run one callback as its event loop would."""
        if handle.loop is not self._running:
            _set_running_loop(handle.loop)
            self._running = handle.loop
        handle.run()

    def _wake_later(self, loop: Stepped) -> None:
        heappush(self._later, (loop.busy_until_us, self.serial(), loop, None))

    def _wake(self, loop: Stepped) -> None:
        if loop.busy_until_us > self.now_us:
            self._wake_later(loop)  # it was stopped again
        else:
            self._ready.extendleft(reversed(loop.backlog))
            loop.backlog.clear()


def _order(item: tuple[int, int, Stepped, SimHandle | None]) -> tuple[int, int]:
    return item[:2]
