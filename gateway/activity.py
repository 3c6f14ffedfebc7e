"""When each agent of this node last said something to its gateway: the third of three facts, beside links and
heartbeats. It is kept in memory alone: a write for each word of an agent would cost more than it tells.
"""

from outbox.ids import AgentId
from stateroom.limits import AGENTS_ACTIVE_MAX


class Activity:
    """Agents and times. No clock: the times are arguments."""

    def __init__(self) -> None:
        self._last: dict[AgentId, int] = {}

    def note(self, agent: AgentId, wall_ms: int) -> None:
        """It has just said something."""
        self._last.pop(agent, None)
        self._last[agent] = wall_ms

    def last_ms(self, agent: AgentId) -> int | None:
        """When that was; None while it has said nothing since this gateway started."""
        return self._last.get(agent)

    def latest(self) -> dict[AgentId, int]:
        """As many as are told to other nodes: those who spoke last."""
        return dict(list(self._last.items())[-AGENTS_ACTIVE_MAX:])
