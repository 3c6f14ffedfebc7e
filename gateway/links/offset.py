"""How far a peer's clock is ahead of ours. Each answer to a ping measures it; most say nothing new.

A measurement is wrong by half of its round trip at most, and by what milliseconds cut off. Another one is
news when the two cannot both be right, as after a clock was set, or when it is twice as exact. All others
would only make idle gateways tick.
"""

from gateway.engine.inputs import ClockMeasured
from gateway.engine.limits import CLOCK_ROUNDING_MS
from gateway.engine.peers import contradict
from gateway.wire.frames import Pong
from outbox.ids import NodeId


class Offset:
    """Of the clock of one peer, over one link."""

    def __init__(self, peer: NodeId) -> None:
        self.ms: int | None = None
        """As the last answer has it; None before the first."""
        self.told: ClockMeasured | None = None
        """The last news."""
        self._peer = peer

    def measure(self, pong: Pong, mono_ms: int, wall_ms: int) -> ClockMeasured | None:
        """An answer came at this moment of our clocks; what the engine has to know of it, if anything."""
        half_ms = (mono_ms - pong.at_ms) // 2
        self.ms = pong.time_ms + half_ms - wall_ms
        measured = ClockMeasured(self._peer, self.ms, half_ms)
        if self.told is not None and not _is_news(measured, self.told):
            return None
        self.told = measured
        return measured


def _is_news(now: ClockMeasured, told: ClockMeasured) -> bool:
    twice_as_exact = (now.within_ms + CLOCK_ROUNDING_MS) * 2 <= told.within_ms + CLOCK_ROUNDING_MS
    return contradict(now, told) or twice_as_exact
