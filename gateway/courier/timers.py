"""Deadlines that can be moved and cancelled: a heap whose stale entries are skipped."""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from gateway.courier.limits import STALE_MIN

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """At most one deadline a key. A step is O(log n), amortised; whoever asks what is due tidies up, so that
    memory stays O(live deadlines and those of one tick).
    """

    def __init__(self) -> None:
        self._due: dict[Key, tuple[int, int, Key]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._turn = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Key, at_ms: int) -> None:
        """Make or move a deadline; of equal ones the first set is the first due."""
        self._turn += 1
        self._due[key] = entry = (at_ms, self._turn, key)
        heappush(self._heap, entry)

    def cancel(self, key: Key) -> None:
        """Forget a deadline; none is fine."""
        self._due.pop(key, None)

    def at_ms(self, key: Key) -> int | None:
        """When a key is due."""
        due = self._due.get(key)
        return due[0] if due else None

    def next_ms(self) -> int | None:
        """The earliest deadline."""
        if len(self._heap) > STALE_MIN + 2 * len(self._due):
            self._heap = list(self._due.values())  # most are stale: what never runs out leaves nothing behind
            heapify(self._heap)
        while self._heap and self._due.get(self._heap[0][2]) is not self._heap[0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[Key]:
        """Take the keys whose time has come, in order; deadlines set meanwhile are seen too."""
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            key = heappop(self._heap)[2]
            del self._due[key]
            yield key
