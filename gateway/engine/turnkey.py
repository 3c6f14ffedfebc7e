"""The name of a turn inside the engine.

Agents see event ids and leases; the courier, the timers and what is held go by this.
"""

from gateway.courier.item import ItemId
from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Received

TurnKey = ItemId
"""The source, the event and the agent."""


def turn_key(row: Received) -> TurnKey:
    """What names the turn of a row."""
    return row.source, row.event_id, row.to_agent


def turn_text(key: TurnKey) -> str:
    """``evt_…@source/agent``, as it stands in rows."""
    source, event, agent = key
    return f"{event}@{source}/{agent}"


def parse_turn_key(text: str) -> TurnKey:
    """The key that was written so."""
    event, _, place = text.partition("@")
    source, _, agent = place.partition("/")
    return NodeId(source), EventId(event), AgentId(agent)
