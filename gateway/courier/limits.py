"""Every bound of the courier, with its reason."""

from math import ceil

import msgspec

PRIORITIES = 5
"""0 critical … 2 normal … 4 low: the range of the envelope."""

RESERVED_PRIORITY_MAX = 1
"""Priorities up to this one may use the reserved share of a stream."""


class CourierLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one courier; the defaults are those of an agent's inbox."""

    max_depth: int = 50_000
    """Items of one stream: waiting, delayed and in flight. About 20 MB with ids, and hours of work."""

    reserve_share: float = 0.1
    """Of ``max_depth``, kept free for priority 0 and 1: a flood of chatter must not shut out an alarm."""

    lease_ms: int = 30_000
    """How long a consumer may be silent before its item is dealt again."""

    lease_ms_max: int = 3_600_000
    """The most one ``extend`` may ask for: a dead consumer holds an item for an hour at worst."""

    delay_ms_max: int = 3_600_000
    """The longest delay of a ``nack``, for the same reason."""

    max_deliveries: int = 5
    """Hand-overs before an item counts as one that its consumer cannot digest."""

    credit_max: int = 10_000
    """Unused credit of one subscriber: it bounds what a reader that stopped reading can be owed."""

    def room_for(self, priority: int) -> int:
        """How many items a stream may hold and still take one more of this priority."""
        if priority <= RESERVED_PRIORITY_MAX:
            return self.max_depth
        return self.max_depth - ceil(self.max_depth * self.reserve_share)


DEALT_MAX = 300
"""Items that one pump hands over, and that it takes back: a reader may grant ten thousand at once, or come
back to as many, and each is a row to read and to write, some twenty milliseconds together. The rest follows
in the next."""

STALE_MIN = 64
"""Below this many entries a rebuild costs more than the stale ones do."""
