"""Agents that answer each other without an end: a bound on how fast, per pair of agents and per thread.

A token bucket each: a burst, then a steady rate. Only messages that answer another one pay; who begins a
conversation, or pours out a stream of messages that name no cause, is not slowed.
"""

from collections import OrderedDict
from typing import NamedTuple

import msgspec

from gateway.engine.limits import PACES_MAX


class PaceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one bucket holds and how fast it fills."""

    burst: int = 60
    per_minute: int = 30

    @property
    def refill_ms(self) -> float:
        """Time for one token."""
        return 60_000 / self.per_minute


class _Bucket(NamedTuple):
    tokens: float
    at_ms: int


class Pace:
    """The buckets of one gateway, full at its start. Times are monotonic milliseconds."""

    def __init__(self, limits: PaceLimits) -> None:
        self._limits = limits
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait_ms(self, keys: tuple[str, ...], now_ms: int) -> int:
        """For how long one must wait until each of these has a token; 0: now."""
        missing = max((1 - self._tokens(key, now_ms) for key in keys), default=0)
        return 0 if missing <= 0 else max(1, round(missing * self._limits.refill_ms))

    def spend(self, keys: tuple[str, ...], now_ms: int) -> None:
        """Take a token of each."""
        for key in keys:
            self._buckets[key] = _Bucket(self._tokens(key, now_ms) - 1, now_ms)
            self._buckets.move_to_end(key)
        while len(self._buckets) > PACES_MAX:
            self._buckets.popitem(last=False)

    def _tokens(self, key: str, now_ms: int) -> float:
        bucket = self._buckets.get(key)
        if bucket is None:
            return self._limits.burst
        filled = (now_ms - bucket.at_ms) / self._limits.refill_ms
        return min(self._limits.burst, bucket.tokens + filled)
