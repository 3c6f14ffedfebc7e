"""What this node has asked of others since it forgot, and when it may ask again.

Memory of one engine, in monotonic milliseconds and places of the current epoch. After a restart nothing is
known of where the questions stand: all of them stand before the end that was found.
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
        """When the next one may be asked again that may not be now."""
        return min(
            (asked.again_ms for asked in self._asked.values() if asked.again_ms > now_ms), default=None
        )
