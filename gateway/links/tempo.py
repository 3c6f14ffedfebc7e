"""How fast the frames of one peer are handled, where nothing else bounds it.

Pages have credit, blobs have wants, and both have their turn. All else that a peer may say at any time is
handled so often at once, and then so often a second: what a gateway that behaves never comes near. Who says
it more often is read more slowly, and nothing of it is lost.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.links.limits import FRAMES_IN_A_ROW
from gateway.wire.frames import Credit, Floor, Frame, Have, Ping, Pong, Seen, Want


class Rate(NamedTuple):
    """So many at once, and so many a second."""

    burst: int
    per_s: int


_LISTS = Rate(100, 5)
"""All that there may be to offer takes half of that, and growth is told once a second."""

_WANTS = Rate(2_000, 20)
"""Each costs a look into the journal, and a page. A seed of a thousand nodes is read in one go."""

_SIGNS = Rate(1_000, 1_000)
"""Signs of life and of progress: a peer of version 1 sends one for each page."""

RATES: Mapping[type[Frame], Rate] = {
    Have: _LISTS,
    Floor: _LISTS,
    Want: _WANTS,
    Seen: _SIGNS,
    Credit: _SIGNS,
    Ping: _SIGNS,
    Pong: _SIGNS,
}


class Tempo:
    """Of one link. Times are milliseconds of one monotonic clock."""

    def __init__(self, rates: Mapping[type[Frame], Rate] = RATES) -> None:
        self._rates = rates
        self._free_ms: dict[type[Frame], float] = {}
        """When all of the burst can be had again."""
        self._in_a_row = 0

    def pause_s(self, frame: Frame, now_ms: int) -> float | None:
        """How long to wait before this frame is handled; None: not at all.

        After some frames it is 0 at least: a socket that has more would give nobody else a turn.
        """
        self._in_a_row += 1
        wait_s = self._wait_s(type(frame), now_ms)
        if not wait_s and self._in_a_row < FRAMES_IN_A_ROW:
            return None
        self._in_a_row = 0
        return wait_s

    def _wait_s(self, kind: type[Frame], now_ms: int) -> float:
        rate = self._rates.get(kind)
        if rate is None:
            return 0.0
        each_ms = 1000 / rate.per_s
        self._free_ms[kind] = free_ms = max(self._free_ms.get(kind, 0), now_ms) + each_ms
        return max(0.0, free_ms - now_ms - rate.burst * each_ms) / 1000
