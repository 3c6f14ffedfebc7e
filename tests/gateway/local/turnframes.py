"""Turns as a gateway sends them, by number."""

from gateway.endpoints.frames import deliver_text
from gateway.engine.effects import Handed
from outbox.envelope import encode_event
from tests.gateway.outboxes import event_id, message


def frame(number: int, *, resumed: bool, lease_ms: int) -> str:
    """The hand-over of a message, under a lease of the same number."""
    turn = Handed(
        subscriber="s",
        event_id=event_id(number),
        lease_id=f"lease_{number}",
        lease_ms=lease_ms,
        delivery_count=1,
        resumed=resumed,
        body=encode_event(message(number)),
    )
    return deliver_text(turn)
