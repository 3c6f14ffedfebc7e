"""The ACKs a receiver owes, as events of its own outbox."""

from gateway.engine.tick import Tick
from outbox.envelope import Ack, Event, encode_payload
from outbox.ids import EventId, NodeId
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Received
from outbox.timestamps import rfc3339


def accept(tick: Tick, row: Received) -> None:
    """Emit ``ack:accepted``: in the same transaction as the row it speaks of."""
    _emit(tick, row.source, Ack(ref=row.event_id, status=AckStatus.ACCEPTED))


def process(tick: Tick, row: Received) -> None:
    """Emit the terminal ``ack:processed`` of a row that is done."""
    assert row.outcome is not None
    ack = Ack(
        ref=row.event_id,
        status=AckStatus.PROCESSED,
        outcome=row.outcome,
        error=row.error,
        engaged_at=rfc3339(row.engaged_at_ms) if row.engaged_at_ms is not None else None,
        deliveries=row.delivery_count,
    )
    _emit(tick, row.source, ack)


def refuse(tick: Tick, source: NodeId, event: EventId, error: str) -> None:
    """Emit a refusal: the event will never be engaged here."""
    _emit(tick, source, Ack(ref=event, status=AckStatus.PROCESSED, outcome=Outcome.REFUSED, error=error))


def _emit(tick: Tick, to: NodeId, ack: Ack) -> None:
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.ACK,
        source_node_id=tick.identity.node,
        corr_id=ack.ref,
        created_at=tick.stamp(),
        payload=encode_payload(ack),
    )
    tick.emit(event, (to,))
