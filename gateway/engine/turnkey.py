"""The name of a turn inside the engine: an event id alone is not one, since two nodes may send the
same, and one event may be for several agents.

Agents see event ids and leases; the courier, the timers and what is held go by this.
"""

from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Received


def turn_key(row: Received) -> str:
    """``evt_…@source/agent``."""
    return f"{row.event_id}@{row.source}/{row.to_agent}"


def parse_turn_key(key: str) -> tuple[NodeId, EventId, AgentId]:
    """The source, the event and the agent."""
    event, _, place = key.partition("@")
    source, _, agent = place.partition("/")
    return NodeId(source), EventId(event), AgentId(agent)
