"""An agent came: it gets the broadcasts that have not expired, as far as it has room, part by part."""

import msgspec
from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.latecomers import missed
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Errand, LocalAgent

_Place = tuple[int, EventId, NodeId]
"""When a broadcast expires, its event and who sent it."""


def begin(tick: Tick, turns: Turns, agent: LocalAgent) -> None:
    """Whatever comes from now on it gets like everybody. Broadcasts go to those who live here."""
    turns.open_inbox(agent.name)
    if agent.stands_in_for:
        return
    first = (tick.now.wall_ms + 1, EventId(f"evt_{'0' * 32}"), NodeId(""))
    tick.errands.begin(tick, Joining(turns, Errand(Task.JOINING, agent.name, _written(first))))


class Joining:
    """Give an agent what was there before it, the soonest to expire first."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        agent = AgentId(self.row.subject)
        rows = tick.store.broadcasts(msgspec.json.decode(self.row.detail, type=_Place), most)
        for late, event in missed(tick, agent, rows):
            if self._turns.has_room(agent, late.priority, held=False):
                tick.store.put_received(late)
                self._turns.take(tick, late, event)
        if rows:
            last = rows[-1]
            place = (last.expires_at_ms, last.event_id, last.source)
            self.row = replace(self.row, detail=_written(place))
        return len(rows)


def _written(place: _Place) -> str:
    return msgspec.json.encode(place).decode()
