"""The clocks and the entropy of one simulated node."""

from gateway.clock import Clock
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.timeline import Timeline

START_MS = 1_790_000_000_000
"""Wall clock at the beginning of every world: September 2026."""


class SimClock(Clock):
    """A wall clock that may be wrong, a monotonic one that begins anew with each process, seeded entropy."""

    def __init__(self, timeline: Timeline, dice: Dice) -> None:
        self._timeline = timeline
        self._dice = dice
        self._booted_us = 0
        self._stopped_at_ms: int | None = None
        self.offset_ms = 0
        """How far the wall clock is ahead of the truth."""

    def boot(self) -> None:
        """A new process: its monotonic clock begins somewhere."""
        self._booted_us = self._timeline.now_us - 1_000_000 * self._dice.between(1, 1000)

    def stop(self) -> None:
        """The wall clock stands."""
        self._stopped_at_ms = self.wall_ms()

    def go(self) -> None:
        """It goes on, late by as long as it stood."""
        if self._stopped_at_ms is not None:
            stood_at_ms, self._stopped_at_ms = self._stopped_at_ms, None
            self.offset_ms += stood_at_ms - self.wall_ms()

    def correct(self) -> None:
        """The wall clock tells the truth again."""
        self._stopped_at_ms = None
        self.offset_ms = 0

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as this node believes."""
        if self._stopped_at_ms is not None:
            return self._stopped_at_ms
        return START_MS + self._timeline.now_us // 1000 + self.offset_ms

    def mono_ms(self) -> int:
        """Milliseconds since some moment before the process began."""
        return (self._timeline.now_us - self._booted_us) // 1000

    def entropy(self, size: int) -> bytes:
        """Bytes of the seed."""
        return self._dice.octets(size)
