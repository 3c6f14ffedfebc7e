"""Revoked nodes whose last words may still be on their way, and until when they are waited for.

A revocation names a place in the outbox of the node that was put out; what it said up to there still
counts. Others may hold that part and bring it later, with ACKs that settle what was sent to the node. So
deliveries to it are not ended at once, but when its outbox was read up to that place, or after
``ENDED_UNREAD_AFTER_MS`` in which nobody brought it. This is memory of one engine; a new one sees the
revocations again and waits anew.
"""

from gateway.engine.limits import ENDED_UNREAD_AFTER_MS
from outbox.ids import NodeId
from stateroom.view import View


class Endings:
    """Each revoked node is waited for once, and then has ended. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._late: dict[NodeId, int] = {}
        """Nodes that are waited for, and until when."""
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
        """When the next one will have been waited for long enough; None: there is none."""
        return min(self._late.values(), default=None)
