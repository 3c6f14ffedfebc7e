"""A bound on how often something happens: so many at once, and so many a second from then on."""

from collections.abc import Mapping
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

    def take(self, now_ms: float, count: int = 1) -> float:
        """So many more happen; after so many milliseconds they are within the rate."""
        self._free_ms = max(self._free_ms, now_ms) + count * self._each_ms
        return max(0.0, self._free_ms - now_ms - self._burst_ms)


class Meters:
    """What one peer has had of each kind of message; a kind that has no rate is not counted."""

    def __init__(self, rates: Mapping[type, Rate]) -> None:
        self._meters = {kind: Meter(rate) for kind, rate in rates.items()}

    def take(self, message: object, now_ms: float, count: int = 1) -> float:
        """As ``Meter.take``, for its kind."""
        meter = self._meters.get(type(message))
        return meter.take(now_ms, count) if meter is not None else 0.0
