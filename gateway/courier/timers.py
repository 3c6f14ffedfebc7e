"""Deadlines that can be moved and cancelled: a heap whose stale entries are skipped."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from gateway.courier.limits import STALE_MIN

Key = tuple[str, str]
"""(stream, item id)."""


class Timers:
    """At most one deadline a key. All steps are O(log n), amortised; memory stays O(live deadlines)."""

    def __init__(self) -> None:
        self._due: dict[Key, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._turn = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: Key, at_ms: int) -> None:
        """Make or move a deadline; of equal ones the first set is the first due."""
        self._turn += 1
        self._due[key] = (at_ms, self._turn)
        heappush(self._heap, (at_ms, self._turn, key))
        if len(self._heap) > STALE_MIN + 2 * len(self._due):
            self._rebuild()

    def cancel(self, key: Key) -> None:
        """Forget a deadline; none is fine."""
        gone = self._due.pop(key, None)
        if gone is not None and len(self._heap) > STALE_MIN + 2 * len(self._due):
            self._rebuild()

    def at_ms(self, key: Key) -> int | None:
        """When a key is due."""
        due = self._due.get(key)
        return due[0] if due else None

    def next_ms(self) -> int | None:
        """The earliest deadline."""
        self._skip_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[Key]:
        """Take the keys whose time has come, in order; deadlines set meanwhile are seen too."""
        while (at_ms := self.next_ms()) is not None and at_ms <= now_ms:
            key = heappop(self._heap)[2]
            del self._due[key]
            yield key

    def _skip_stale(self) -> None:
        while self._heap and not self._is_live(self._heap[0]):
            heappop(self._heap)

    def _is_live(self, entry: tuple[int, int, Key]) -> bool:
        return self._due.get(entry[2]) == entry[:2]

    def _rebuild(self) -> None:
        """Most entries are stale: leases that never run out leave nothing behind."""
        self._heap = [(at_ms, turn, key) for key, (at_ms, turn) in self._due.items()]
        heapify(self._heap)
