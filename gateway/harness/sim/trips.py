"""How wrong a node may have taken the clock of another to be: half the round trip of the answer it went by.

It is read from the frames that a process takes off the wire, not from what its engine made of them. A new
connection counts anew; on one connection an answer is gone by when it is the first, or twice as exact.
"""

from bisect import bisect_left
from typing import NamedTuple

from gateway.engine.limits import CLOCK_ROUNDING_MS
from outbox.ids import NodeId


class _Trip(NamedTuple):
    heard_at_ms: int
    half_ms: int
    wire: int


class Trips:
    """Answers to pings, by who asked and who answered."""

    def __init__(self) -> None:
        self._trips: dict[tuple[NodeId, NodeId], list[_Trip]] = {}

    def heard(self, reader: NodeId, peer: NodeId, wire: int, trip_ms: int, at_ms: int) -> None:
        """The answer to a ping came over a connection at this moment, so long after the ping."""
        trips = self._trips.setdefault((reader, peer), [])
        half_ms = trip_ms // 2
        if not trips or trips[-1].wire != wire or _twice_as_exact(half_ms, trips[-1].half_ms):
            trips.append(_Trip(at_ms, half_ms, wire))

    def within_ms(self, reader: NodeId, peer: NodeId, at_ms: int) -> int:
        """By how much a reader could be wrong about a peer's clock at a moment; 0 before any answer."""
        trips = self._trips.get((reader, peer), [])
        before = bisect_left(trips, at_ms, key=lambda trip: trip.heard_at_ms)
        return trips[before - 1].half_ms + CLOCK_ROUNDING_MS if before else 0


def _twice_as_exact(half_ms: int, before_ms: int) -> bool:
    return (half_ms + CLOCK_ROUNDING_MS) * 2 <= before_ms + CLOCK_ROUNDING_MS
