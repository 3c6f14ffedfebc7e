"""Counters of one stream."""

import msgspec


class Counters(msgspec.Struct):
    """Totals since the gateway started."""

    offered: int = 0
    handed: int = 0
    acked: int = 0
    nacked: int = 0
    redelivered: int = 0
    """Hand-overs after an item's first one; a resumed lease is not counted, it is the same hand-over."""


class StreamStats(msgspec.Struct, frozen=True, kw_only=True):
    """One stream at one moment."""

    depth: int
    """Waiting or delayed, not in flight."""
    in_flight: int
    totals: Counters
    oldest_at_ms: int | None
    """Monotonic time at which the oldest unacknowledged item came; None when there is none."""
