"""Open turns in the order of their keys, sorted a part at a time.

An errand that goes through all open turns (to ask about each, say) does some in each tick and notes the
last key; the next part goes on behind it, also after a restart. For that the turns must come in one fixed
order. To sort a hundred thousand in one tick would hold up everything else, so each tick sorts some, and
the sorted runs are merged while keys are taken. Only a start sorts all at once: it has to look at all of
them anyway, and a node that is restarted again and again still gets on.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from gateway.engine.limits import SORTED_PAST
from gateway.engine.turnkey import TurnKey, turn_text
from outbox.ids import NodeId


class InOrder:
    """The turns that are open when this begins: of one source or of all, behind a key."""

    def __init__(self, turns: Sequence[TurnKey], source: NodeId | None, behind: str) -> None:
        self._turns = turns
        self._source = source
        self._behind = behind
        self._seen = 0
        self._runs: list[list[str]] = []
        self._merged: Iterator[str] | None = None

    def sort(self, rows: int) -> bool:
        """Put some of them in order, as many as take no longer than so many rows; whether all are."""
        if self._seen < len(self._turns):
            self._run(self._turns[self._seen : self._seen + rows * SORTED_PAST])
        return self._seen >= len(self._turns)

    def sort_all(self) -> None:
        """Put all in order, at a start."""
        self._run(self._turns[self._seen :])

    def take(self, most: int) -> list[str]:
        """The next keys, at most so many. All of them are in order by now."""
        if self._merged is None:
            self._merged = merge(*self._runs)
        return list(islice(self._merged, most))

    def _run(self, turns: Sequence[TurnKey]) -> None:
        self._seen += len(turns)
        keys = [turn_text(key) for key in turns if self._source is None or self._source == key[0]]
        self._runs.append(sorted(key for key in keys if key > self._behind))
