"""Who was revoked, and until when what such a node had said before is waited for.

Memory of one engine; a new one finds all of them again. What a node had said up to the place that its
revocation names may still come, and settles what it was owed: so its deliveries end once that was read, or
after a while in which nobody brought it.
"""

from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from outbox.ids import NodeId
from stateroom.view import View


class Endings:
    """Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._late: dict[NodeId, int] = {}
        """Who may still be read, and until when that is waited for."""
        self._ended: set[NodeId] = set()

    def see(self, view: View, here: NodeId, now_ms: int) -> list[NodeId]:
        """Who was revoked since the last view."""
        out = {node for node in view.revocations if view.revoked(node) is not None} - {here}
        self._ended &= out
        self._late = {node: at for node, at in self._late.items() if node in out}
        found = sorted(out - self._ended - self._late.keys())
        for node in found:
            self._late[node] = now_ms + ENDED_UNREAD_AFTER_MS
        return found

    def awaits(self, node: NodeId) -> bool:
        """Whether what a node had said before is still waited for."""
        return node in self._late

    def end(self, node: NodeId) -> None:
        """Nothing more will be heard of a node."""
        if self._late.pop(node, None) is not None:
            self._ended.add(node)

    def due(self, now_ms: int) -> list[NodeId]:
        """Who was waited for for long enough."""
        return [node for node, at in self._late.items() if at <= now_ms]

    def next_ms(self) -> int | None:
        """When the next one will have been."""
        return min(self._late.values(), default=None)
