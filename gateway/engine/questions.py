"""Which nodes this one has asked what it did before it forgot, and when it may ask them again.

A question is an event of the own outbox. It is asked again when the other node has read that place and does
not answer, each time after a longer pause. This is memory of one engine: times are monotonic milliseconds,
places are of the current epoch. A restart does not look for where the questions stand. It takes the end of
the outbox for that place: they all stand before it, so whoever has read up to there has read them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.engine.limits import RECALL_AGAIN_MS, RECALL_AGAIN_MS_MAX
from outbox.ids import NodeId, Seq

_NOWHERE = Seq(0)


@dataclass(slots=True)
class _Question:
    seq: Seq
    again_ms: int
    pause_ms: int


class Questions:
    """The last question to each node that has not answered."""

    def __init__(self, doubted: Iterable[NodeId] = (), head: Seq = _NOWHERE, now_ms: int = 0) -> None:
        self._asked: dict[NodeId, _Question] = {}
        for node in doubted:
            self.asked(node, head, now_ms)

    def asked(self, node: NodeId, seq: Seq, now_ms: int) -> None:
        """A question stands at this place; the next one waits twice as long as this one did."""
        before = self._asked.get(node)
        pause_ms = RECALL_AGAIN_MS if before is None else min(2 * before.pause_ms, RECALL_AGAIN_MS_MAX)
        self._asked[node] = _Question(seq, now_ms + pause_ms, pause_ms)

    def answered(self, node: NodeId) -> None:
        """Nothing more has to be asked of it."""
        self._asked.pop(node, None)

    def old(self, now_ms: int) -> list[tuple[NodeId, Seq]]:
        """Who may be asked again, and where the last question to it stands."""
        return [(node, asked.seq) for node, asked in self._asked.items() if asked.again_ms <= now_ms]

    def next_ms(self, now_ms: int) -> int | None:
        """When the next of those that must still wait may be asked again."""
        return min(
            (asked.again_ms for asked in self._asked.values() if asked.again_ms > now_ms), default=None
        )
