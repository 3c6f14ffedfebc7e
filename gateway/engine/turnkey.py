"""The name of a turn inside the engine: an event id alone is not one, since two nodes may send the
same, and one event may be for several agents.

Agents see event ids and leases; the courier, the timers and what is held go by this.
"""

from gateway.routing import inbox_stream
from outbox.ids import AgentId, EventId, NodeId
from outbox.records import Received

Place = tuple[str, str]
"""Where the courier has a turn: its stream and the item there."""


def place_of(row: Received) -> Place:
    """The inbox of a row's agent and the key of its turn."""
    return inbox_stream(row.to_agent), turn_key(row)


def turn_key(row: Received) -> str:
    """``evt_…@source/agent``."""
    return f"{row.event_id}@{row.source}/{row.to_agent}"


def parse_turn_key(key: str) -> tuple[NodeId, EventId, AgentId]:
    """The source, the event and the agent."""
    event, _, place = key.partition("@")
    source, _, agent = place.partition("/")
    return NodeId(source), EventId(event), AgentId(agent)


def from_node(source: NodeId) -> str:
    """What stands in the keys of all turns that a node has sent, and in no other."""
    return f"@{source}/"
