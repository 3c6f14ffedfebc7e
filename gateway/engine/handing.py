"""What a subscriber is told of a turn that it is given."""

from gateway.courier.item import HandOver
from gateway.engine.effects import Handed
from outbox.records import Received


def handed(row: Received, hand: HandOver, lease_ms: int) -> Handed:
    """Give it this turn, under a lease that lasts so long."""
    return Handed(
        subscriber=hand.subscriber,
        event_id=row.event_id,
        lease_id=hand.lease_id,
        lease_ms=lease_ms,
        delivery_count=hand.delivery_count,
        resumed=hand.resumed,
        body=row.body,
    )
