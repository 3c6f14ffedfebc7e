"""The state room says which node owns an agent: events of that agent that were held are let go or refused.

An event whose sending agent nobody has heard of is held (``held``) until the room says whether the node
that sent it owns the agent. Each view of the room is compared with the one before: only agents of which it
says something new are looked at, some in each tick. After a start nothing is known of the view before, so
all are looked at.
"""

from gateway.engine.errands import Task
from gateway.engine.firstreply import SUPERSEDED, asked, is_second
from gateway.engine.tick import Tick
from gateway.engine.turns import FOREIGN_AGENT, Turns
from gateway.routing import Standing, standing
from outbox.envelope import decode_event
from outbox.kinds import Outcome
from outbox.records import Errand, Received
from stateroom.view import View


def see(tick: Tick, turns: Turns, before: View | None) -> None:
    """A new view, and the one before it; None: all of it is new."""
    if before is not None and before.agents is tick.view.agents:
        return
    seen, said = before.agents if before is not None else {}, tick.view.agents
    if turns.judge_anew(lambda agent: said.get(agent) != seen.get(agent)):
        tick.errands.begin(tick, Vouching(turns, Errand(Task.VOUCHING, tick.identity.node)))


class Vouching:
    """Judge what waited for a record of its sender's owner."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = self._turns.to_judge(tick, most)
        for row in rows:
            self._judge(tick, row)
        return len(rows)

    def _judge(self, tick: Tick, row: Received) -> None:
        event = decode_event(row.body)
        assert event.source_agent_id is not None
        answers = asked(tick, row.source, event)
        match standing(tick.view, event.source_agent_id, row.source, event.trace.source_owner_epoch):
            case Standing.OWNER if answers is not None and is_second(tick, answers):
                self._turns.turn_away(tick, row, SUPERSEDED, Outcome.REFUSED)
            case Standing.OWNER:
                self._turns.let_go(tick, row)
            case Standing.FOREIGN:
                whose = f"{event.source_agent_id} at {row.source}"
                tick.open_incident(FOREIGN_AGENT, row.event_id, whose)
                self._turns.turn_away(tick, row, FOREIGN_AGENT, Outcome.REFUSED)
            case _:
                pass  # the record has not come yet
