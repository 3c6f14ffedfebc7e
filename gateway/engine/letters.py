"""Dead letters, and other notices of a gateway about an event: what both sides see of an obligation's end."""

import msgspec
from msgspec.structs import replace

from gateway.engine.tick import Tick
from outbox.delivery import Input, is_for_several, step
from outbox.envelope import DeadLetter, Event, encode_payload
from outbox.ids import EventId
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState

NEVER_ACCEPTED = "never_accepted"
NOT_PROCESSED = "accepted_not_processed"
DEAD = "dead_letter"


def about(row: Delivery) -> str:
    """The subject of incidents about an obligation: its event, and which node of several."""
    return f"{row.event_id}@{row.node}" if is_for_several(row) else row.event_id


def bury(tick: Tick, row: Delivery, why: Input, reason: str) -> None:
    """Give up, where everybody can see it."""
    assert step(row.state, why) is DeliveryState.DEAD_LETTER, f"{row.state} does not end by {why}"
    letter = DeadLetter(ref=row.event_id, reason=reason, attempts=row.tries, last_error=row.error)
    event = notice(tick, Kind.DEAD_LETTER, encode_payload(letter), row.event_id)
    tick.emit(event, (row.node,) if row.node else ())
    tick.close_incident(NEVER_ACCEPTED, about(row))
    tick.close_incident(NOT_PROCESSED, about(row))
    tick.open_incident(DEAD, about(row), reason)
    tick.store.put_delivery(
        replace(
            row,
            state=DeliveryState.DEAD_LETTER,
            dead_at_ms=tick.now.wall_ms,
            next_at_ms=None,
            error=row.error or reason,
        )
    )


def notice(tick: Tick, kind: Kind, payload: msgspec.Raw, about: EventId) -> Event:
    """An event of the gateway itself about another one."""
    return Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=kind,
        source_node_id=tick.identity.node,
        corr_id=about,
        created_at=tick.stamp(),
        payload=payload,
    )
