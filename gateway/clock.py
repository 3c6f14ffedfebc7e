"""The one place that reads a clock or asks for randomness; everything else gets both as arguments."""

import os
import time

from outbox.ids import EventId, make_event_id

_EVENT_ID_BYTES = 10
_LEASE_BYTES = 8
_FRACTION_BITS = 53
"""What a float keeps exactly."""
_PIECE_BYTES, _PIECES = 10, 64
"""What ids take, and for how many of them the system is asked at once: each time costs as much as an id."""

_drawn: list[bytes] = []
"""Of this process, for all its threads: one call takes a piece away, whoever makes it."""
os.register_at_fork(after_in_child=_drawn.clear)


class Clock:
    """Wall clock, monotonic clock and entropy of this machine. Has no state: any number of them are alike."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump. For what other machines or people read."""
        return time.time_ns() // 1_000_000  # noqa: TID251 - this is the place

    def mono_ms(self) -> int:
        """Milliseconds since some moment; never goes back. For leases and timeouts of this process."""
        return time.monotonic_ns() // 1_000_000

    def entropy(self, size: int) -> bytes:
        """So many bytes from the system's generator, fit for keys."""
        if size > _PIECE_BYTES:
            return os.urandom(size)
        try:
            return _drawn.pop()[:size]
        except IndexError:
            some = os.urandom(_PIECE_BYTES * _PIECES)
            _drawn.extend(
                [some[at : at + _PIECE_BYTES] for at in range(_PIECE_BYTES, len(some), _PIECE_BYTES)]
            )
            return some[:size]

    def fraction(self) -> float:
        """An even draw from [0, 1), for jitter."""
        return (int.from_bytes(self.entropy(7)) >> (56 - _FRACTION_BITS)) / (1 << _FRACTION_BITS)

    def event_id(self, wall_ms: int | None = None) -> EventId:
        """A new event id that carries this time; now, if none is given."""
        return make_event_id(self.wall_ms() if wall_ms is None else wall_ms, self.entropy(_EVENT_ID_BYTES))

    def lease_id(self) -> str:
        """A new lease id: unguessable, since it is what an answer must name."""
        return f"lease_{self.entropy(_LEASE_BYTES).hex()}"
