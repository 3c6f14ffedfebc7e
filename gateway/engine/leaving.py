"""An agent was removed: what it did not finish has failed, however much that is.

It lives here no longer from the first moment: nothing is accepted for it, nobody answers for it, and all that
still ends of it has failed for this reason. Until the last turn has, nobody else can have its name here.
"""

from gateway.engine.errands import Task
from gateway.engine.latecomers import AGENT_REMOVED
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.ids import AgentId
from outbox.records import Errand


def begin(tick: Tick, turns: Turns, agent: AgentId) -> None:
    """Its sockets get nothing more, and its turns fail."""
    turns.close_inbox(agent, tick.now)
    tick.errands.drop(tick, Task.JOINING, agent)
    tick.errands.begin(tick, Leaving(turns, Errand(Task.LEAVING, agent)))


class Leaving:
    """End all turns of an agent."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = tick.store.inbox(AgentId(self.row.subject), done=False, limit=most)
        for row in rows:
            self._turns.turn_away(tick, row, AGENT_REMOVED)
        return len(rows)
