"""The name of a turn inside the engine: an event id alone is not one, since two nodes may send the same.

Agents see event ids and leases; the courier, the timers and what is held go by this.
"""

from outbox.ids import EventId, NodeId
from outbox.records import Received


def turn_key(row: Received) -> str:
    """``evt_…@source``."""
    return f"{row.event_id}@{row.source}"


def parse_turn_key(key: str) -> tuple[NodeId, EventId]:
    """The source and the event."""
    event, _, source = key.partition("@")
    return NodeId(source), EventId(event)
