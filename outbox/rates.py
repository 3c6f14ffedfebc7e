"""A bound on how often something happens: so many at once, and so many a second from then on."""

from typing import NamedTuple


class Rate(NamedTuple):
    """So many at once, and so many a second."""

    burst: int
    per_s: float


class Meter:
    """What one of them has had. Times are milliseconds of one monotonic clock."""

    def __init__(self, rate: Rate) -> None:
        self._each_ms = 1000 / rate.per_s
        self._burst_ms = rate.burst * self._each_ms
        self._free_ms = 0.0
        """When all of the burst can be had again."""

    def has_some(self, now_ms: float) -> bool:
        """Whether one more would be within the rate."""
        return max(self._free_ms, now_ms) + self._each_ms <= now_ms + self._burst_ms

    def take(self, now_ms: float) -> float:
        """One more happens; after so many milliseconds it is within the rate."""
        self._free_ms = max(self._free_ms, now_ms) + self._each_ms
        return max(0.0, self._free_ms - now_ms - self._burst_ms)
