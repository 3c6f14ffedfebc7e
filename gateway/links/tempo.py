"""How fast the frames of one peer are handled, where nothing else bounds it.

Pages have credit, blobs have wants, and both have their turn. All else that a peer may say at any time is
handled so often at once, and then so often a second: what a gateway that behaves never comes near. Who says
it more often is read more slowly, and nothing of it is lost.
"""

from collections.abc import Mapping

from gateway.links.limits import FRAMES_IN_A_ROW
from gateway.wire.frames import Credit, Floor, Frame, Have, Ping, Pong, Seen, Want
from outbox.rates import Meters, Rate

_LISTS = Rate(100, 60)
"""All that there may be to offer takes 50, and how it grows is told once a second."""

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
        self._meters = Meters(rates)
        self._in_a_row = 0

    def pause_s(self, frame: Frame, now_ms: int) -> float | None:
        """How long to wait before this frame is handled; None: not at all.

        After some frames it is 0 at least: a socket that has more would give nobody else a turn.
        """
        self._in_a_row += 1
        wait_ms = self._meters.take(frame, now_ms)
        if not wait_ms and self._in_a_row < FRAMES_IN_A_ROW:
            return None
        self._in_a_row = 0
        return wait_ms / 1000
