"""Circles of agents whose messages do not say what they answer.

No message of such a circle can be told from one that begins something new. But in a circle of any size each
agent is handed a message before it sends one. So who names no cause pays for as many messages as it was
handed, from a bucket that no work empties and a circle of programs does. What an agent sends without having
been handed anything, a stream of whatever rate, pays nothing.
"""

from gateway.engine.pace import Pace, PaceLimits
from outbox.ids import AgentId

UNSAID = PaceLimits(burst=6_000, per_minute=6_000)
"""A hundred messages a second for each agent, after a minute's worth at once: far above what agents that
think can do, and a twentieth of what two programs on one machine would reach."""


class Circles:
    """What each agent was handed and has not paid for. Times are monotonic milliseconds."""

    def __init__(self, limits: PaceLimits) -> None:
        self._pace = Pace(limits)
        self._unpaid_max = limits.burst
        self._unpaid: dict[AgentId, int] = {}

    def handed(self, agent: AgentId) -> None:
        """It has a message in hand: what it sends next may answer that.

        No more is owed than a bucket holds: a day of reading does not slow down who writes afterwards.
        """
        self._unpaid[agent] = min(self._unpaid_max, self._unpaid.get(agent, 0) + 1)

    def pay(self, agent: AgentId, now_ms: int) -> int:
        """It sends one that names no cause. For how long it must wait before it may; 0: it has paid."""
        unpaid = self._unpaid.get(agent)
        if unpaid is None:
            return 0
        wait_ms = self._pace.wait_ms((agent,), now_ms)
        if wait_ms:
            return wait_ms
        self._pace.spend((agent,), now_ms)
        if unpaid > 1:
            self._unpaid[agent] = unpaid - 1
        else:
            del self._unpaid[agent]
        return 0
