"""Leases that count no more, those of a whole source at once.

There may be tens of thousands of them, so nobody looks for them: each lease says how many times leases had
been ended before it was made. An item under one that is void lies where it lay, in nobody's hand, until it is
taken back.
"""

from gateway.courier.item import Lease
from outbox.ids import NodeId


class Voids:
    """For all streams."""

    def __init__(self) -> None:
        self.times = 0
        """How many times leases were ended so far."""
        self._ended: dict[NodeId, int] = {}

    def __bool__(self) -> bool:
        return bool(self._ended)

    def end(self, source: NodeId) -> None:
        """What is in a hand of a source is in none from now on."""
        self.times += 1
        self._ended[source] = self.times

    def has(self, source: NodeId, lease: Lease) -> bool:
        """Whether the lease on an item of a source counts no more."""
        return lease.made < self._ended.get(source, 0)
