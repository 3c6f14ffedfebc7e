"""Accepted events that wait until their stream is read to where it was advertised.

What stands further on may take them back: a later attempt that went elsewhere, or the sender's dead letter.
The wait ends when the stream is read to the head that its link advertised, when that link is gone, or when
the stream has not moved for ``BEHIND_MS_MAX``: then what was read is all that can be had.
"""

from collections.abc import Iterable

from gateway.courier.timers import Timers
from gateway.engine.limits import BEHIND_MS_MAX
from gateway.engine.turnkey import TurnKey
from outbox.ids import NodeId


class Parked:
    """Turns by the node whose stream brought them, oldest first. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._by_source: dict[NodeId, dict[TurnKey, None]] = {}
        self._deadlines: Timers[NodeId] = Timers()

    def __contains__(self, key: TurnKey) -> bool:
        return key in self._by_source.get(key[0], ())

    def add(self, key: TurnKey, now_ms: int) -> None:
        """Let a turn wait for its stream."""
        source = key[0]
        if source not in self._by_source:
            self._deadlines.set(source, now_ms + BEHIND_MS_MAX)
        self._by_source.setdefault(source, {})[key] = None

    def moved(self, source: NodeId, now_ms: int) -> None:
        """The stream goes on: its bound begins anew."""
        if source in self._by_source:
            self._deadlines.set(source, now_ms + BEHIND_MS_MAX)

    def drop(self, key: TurnKey) -> None:
        """It waits no longer; one that does not wait is fine."""
        waiting = self._by_source.get(key[0])
        if waiting is None or key not in waiting:
            return
        del waiting[key]
        if not waiting:
            self.release(key[0])

    def release(self, source: NodeId) -> list[TurnKey]:
        """All that wait for a stream, in their order; they wait no longer."""
        self._deadlines.cancel(source)
        return list(self._by_source.pop(source, ()))

    def due(self, now_ms: int) -> Iterable[NodeId]:
        """Streams that have stood still for too long."""
        return list(self._deadlines.pop_due(now_ms))

    def next_ms(self) -> int | None:
        """When the next one will have."""
        return self._deadlines.next_ms()
