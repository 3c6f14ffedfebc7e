"""Which nodes are away, since when, and for whom their absence has lasted too long.

Counted on the monotonic clock from when this process first saw it: a clock that jumps makes nobody absent,
and a restart gives everybody the whole grace again.
"""

from gateway.routing import Away
from outbox.ids import AgentId, NodeId
from stateroom.view import OwnerView, View

Pair = tuple[NodeId, AgentId]
"""A node that is away, and an agent that it answers for."""


class Absences:
    """What the views have told so far. Times are monotonic milliseconds."""

    def __init__(self, here: NodeId) -> None:
        self._here = here
        self._since: dict[NodeId, int] = {}
        self._due: dict[Pair, int] = {}

    def see(self, view: View, now_ms: int) -> None:
        """Look at a view; whatever is overdue is ready (again), since somebody else may have come.

        A node that a record names and that nobody has admitted is away like one that is not heard of.
        """
        named = {node for owner in _followed(view) for node in (owner.node, *owner.fallback)}
        for node in (*view.nodes, *(named - view.nodes.keys())):
            if node == self._here or view.online(node):
                self._since.pop(node, None)
            else:
                self._since.setdefault(node, now_ms)
        self._due = dict(self._pairs(view)) if self._since else {}

    def _pairs(self, view: View) -> list[tuple[Pair, int]]:
        return [
            ((node, owner.agent), self._since[node] + owner.grace_ms)
            for owner in _followed(view)
            for node in (owner.node, *owner.fallback)
            if node in self._since
        ]

    def away(self, now_ms: int) -> Away:
        """For how long a node is away; None for one that is not."""

        def since(node: NodeId) -> int | None:
            begun_ms = self._since.get(node)
            return None if begun_ms is None else now_ms - begun_ms

        return since

    def take_overdue(self, now_ms: int) -> list[Pair]:
        """Pairs whose grace is over, each once after every view."""
        overdue = [pair for pair, due_ms in self._due.items() if due_ms <= now_ms]
        for pair in overdue:
            del self._due[pair]
        return overdue

    def again(self, pair: Pair, now_ms: int) -> None:
        """There is more to do about this one."""
        self._due[pair] = now_ms

    def next_ms(self) -> int | None:
        """When the next grace ends."""
        return min(self._due.values(), default=None)


def _followed(view: View) -> list[OwnerView]:
    """The owners whose absence somebody stands in for."""
    return [owner for owner in view.agents.values() if owner.fallback and owner.status == "active"]
