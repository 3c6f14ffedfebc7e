"""Accepted events that wait until their stream is read to where it was advertised.

What stands further on may take them back: a later attempt that went elsewhere, or the sender's dead letter.
The wait ends when the stream is read to the head that its link advertised, when that link is gone, or when
the stream has not moved for ``BEHIND_MS_MAX``: then what was read is all that can be had.
"""

from collections.abc import Iterable

from gateway.courier.timers import Timers
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.turnkey import Place
from outbox.ids import NodeId

_SOURCE = "source"


class Parked:
    """Items by the node whose stream brought them, oldest first. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._by_source: dict[NodeId, dict[Place, None]] = {}
        self._source_of: dict[Place, NodeId] = {}
        self._deadlines = Timers()

    def __contains__(self, place: Place) -> bool:
        return place in self._source_of

    def add(self, source: NodeId, place: Place, now_ms: int) -> None:
        """Let an item wait for its stream."""
        if not self._by_source.get(source):
            self._deadlines.set((_SOURCE, source), now_ms + BEHIND_MS_MAX)
        self._by_source.setdefault(source, {})[place] = None
        self._source_of[place] = source

    def moved(self, source: NodeId, now_ms: int) -> None:
        """The stream goes on: its bound begins anew."""
        if source in self._by_source:
            self._deadlines.set((_SOURCE, source), now_ms + BEHIND_MS_MAX)

    def drop(self, place: Place) -> None:
        """It waits no longer; one that does not wait is fine."""
        source = self._source_of.pop(place, None)
        if source is None:
            return
        waiting = self._by_source[source]
        del waiting[place]
        if not waiting:
            self.release(source)

    def release(self, source: NodeId) -> list[Place]:
        """All that wait for a stream, in their order; they wait no longer."""
        self._deadlines.cancel((_SOURCE, source))
        places = list(self._by_source.pop(source, ()))
        for place in places:
            del self._source_of[place]
        return places

    def due(self, now_ms: int) -> Iterable[NodeId]:
        """Streams that have stood still for too long."""
        return [NodeId(source) for _, source in self._deadlines.pop_due(now_ms)]

    def next_ms(self) -> int | None:
        """When the next one will have."""
        return self._deadlines.next_ms()
