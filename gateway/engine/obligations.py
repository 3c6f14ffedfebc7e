"""An event leaves: one entry in the outbox, and one obligation beside it for each node that it goes to."""

from collections.abc import Sequence

from gateway.engine.attempts import first_check_ms
from gateway.engine.tick import Tick
from outbox.envelope import Event
from outbox.ids import AgentId, NodeId
from outbox.records import Delivery, DeliveryState
from outbox.timestamps import parse_rfc3339


def owe(tick: Tick, event: Event, address: str, nodes: Sequence[NodeId]) -> list[Delivery]:
    """Append an event of an agent for these nodes; for none it has one obligation that stands nowhere.

    Raises TooLarge before anything changed.
    """
    assert event.source_agent_id is not None
    assert event.thread_id is not None
    assert event.expires_at is not None
    seq = tick.emit(event, tuple(nodes))
    expires_at_ms = parse_rfc3339(event.expires_at)
    rows = [
        Delivery(
            event_id=event.event_id,
            kind=event.kind,
            from_agent=event.source_agent_id,
            to_agent=AgentId(address),
            node=node,
            state=DeliveryState.EMITTED,
            seq=seq,
            thread_id=event.thread_id,
            emitted_at_ms=tick.now.wall_ms,
            created_at_ms=tick.now.wall_ms,
            expires_at_ms=expires_at_ms,
            next_at_ms=first_check_ms(tick, expires_at_ms),
        )
        for node in (*nodes,) or (None,)
    ]
    for row in rows:
        tick.store.put_delivery(row)
    return rows
