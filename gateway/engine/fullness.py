"""Inboxes that had to refuse events: their operator hears of it, not only whoever was refused."""

from collections.abc import Iterable

from msgspec.structs import replace

from gateway.engine.tick import Tick
from outbox.delivery import INBOX_FULL as FULL
from outbox.ids import AgentId, EventId
from outbox.records import Incident


class Fullness:
    """One open incident an agent, with the number of events that were refused since it was opened."""

    def __init__(self, incidents: Iterable[Incident]) -> None:
        self._full = {incident.subject for incident in incidents if incident.kind == FULL}

    def __contains__(self, agent: AgentId) -> bool:
        return agent in self._full

    def refused(self, tick: Tick, agent: AgentId, event: EventId) -> None:
        """An event was refused for want of room."""
        known = tick.store.incident(FULL, agent)
        if agent in self._full and known is not None:
            count = int(known.detail.split(" ", 1)[0]) + 1
            tick.store.put_incident(replace(known, detail=_detail(count, event)))
        else:
            self._full.add(agent)
            tick.open_incident(FULL, agent, _detail(1, event))

    def eased(self, tick: Tick, agent: AgentId) -> None:
        """There is room again."""
        self._full.discard(agent)
        tick.close_incident(FULL, agent)


def _detail(count: int, event: EventId) -> str:
    return f"{count} refused, last {event}"
