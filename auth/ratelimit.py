"""Token buckets over a bounded number of keys; the clock is an argument.

A bucket holds ``burst`` tokens and gains ``refill_per_s``; a call takes one. When more keys come than fit,
the one idle for longest is forgotten, which at worst gives a stranger a fresh burst and never takes one from
anybody.
"""

from collections import OrderedDict
from typing import NamedTuple


class _Bucket(NamedTuple):
    tokens: float
    at_ms: int


class RateLimit:
    """Buckets by key, least recently used first."""

    def __init__(self, *, burst: int, refill_per_s: float, keys_max: int) -> None:
        assert burst >= 1
        assert refill_per_s > 0
        assert keys_max >= 1
        self._burst = float(burst)
        self._per_ms = refill_per_s / 1000
        self._keys_max = keys_max
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str, now_ms: int) -> int:
        """Take a token: 0, or how many milliseconds to wait for the next one (nothing was taken then)."""
        tokens, at_ms = self._filled(key, now_ms)
        allowed = tokens >= 1
        self._buckets[key] = _Bucket(tokens - 1 if allowed else tokens, at_ms)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._keys_max:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, int((1 - tokens) / self._per_ms))

    def _filled(self, key: str, now_ms: int) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            return _Bucket(self._burst, now_ms)
        # A clock that was set back refills nothing and takes nothing.
        passed_ms = max(0, now_ms - bucket.at_ms)
        return _Bucket(min(self._burst, bucket.tokens + passed_ms * self._per_ms), now_ms)

    def __len__(self) -> int:
        return len(self._buckets)
