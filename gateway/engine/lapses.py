"""Nodes that have forgotten what they accepted, and how far taking that back has come.

Memory of one engine; that there is something to do is kept in the store.
"""

from collections.abc import Iterable

from outbox.ids import EventId, NodeId
from outbox.records import Delivery, Lapse

After = tuple[int, EventId, NodeId | None]
"""A place among the deliveries of a state."""

_FIRST: After = (-1, EventId(f"evt_{'0' * 32}"), None)


class Lapses:
    """What is left to do, one lapse after the other, and how far each has come since this engine began."""

    def __init__(self, lapses: Iterable[Lapse] = ()) -> None:
        self._after = dict.fromkeys(lapses, _FIRST)

    def __bool__(self) -> bool:
        return bool(self._after)

    def begin(self, lapse: Lapse) -> None:
        """Look at all that the node has accepted; from the first one, if that has begun."""
        self._after[lapse] = _FIRST

    def next(self) -> tuple[Lapse, After] | None:
        """The lapse to go on with now, and where."""
        return next(iter(self._after.items()), None)

    def went_on(self, lapse: Lapse, last: Delivery) -> None:
        """The rows up to this one were looked at."""
        self._after[lapse] = (last.created_at_ms, last.event_id, last.node)

    def end(self, lapse: Lapse) -> None:
        """All were."""
        del self._after[lapse]
