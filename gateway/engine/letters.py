"""Dead letters, and other notices of a gateway about an event: what both sides see of an obligation's end."""

import msgspec
from msgspec.structs import replace

from gateway.engine.tick import Tick
from outbox.delivery import Input, is_for_several, step
from outbox.envelope import DeadLetter, Event, decode_event, encode_payload
from outbox.ids import EventId
from outbox.kinds import Kind, Outcome
from outbox.records import Delivery, DeliveryState

NEVER_ACCEPTED = "never_accepted"
NOT_PROCESSED = "accepted_not_processed"
DEAD = "dead_letter"
ANSWERED_AFTER_DEAD = "answered_after_dead_letter"


def about(row: Delivery) -> str:
    """The subject of incidents about an obligation: its event, and which node of several."""
    return f"{row.event_id}@{row.node}" if is_for_several(row) else row.event_id


def close(tick: Tick, row: Delivery, *kinds: str) -> None:
    """End what is open about an obligation, of these kinds."""
    if not tick.store.open_kinds.isdisjoint(kinds):
        for kind in kinds:
            tick.close_incident(kind, about(row))


def bury(tick: Tick, row: Delivery, why: Input, reason: str) -> None:
    """Give up, where everybody can see it."""
    assert step(row.state, why) is DeliveryState.DEAD_LETTER, f"{row.state} does not end by {why}"
    row = _told(tick, row)
    letter = DeadLetter(ref=row.event_id, reason=reason, attempts=row.tries, last_error=row.error)
    event = notice(tick, Kind.DEAD_LETTER, encode_payload(letter), row.event_id)
    tick.emit(event, (row.node,) if row.node else ())
    close(tick, row, NEVER_ACCEPTED, NOT_PROCESSED)
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
    if row.outcome is Outcome.OK or row.replied_at_ms is not None:  # there, before it was asked once more
        tick.open_incident(ANSWERED_AFTER_DEAD, about(row), "it had been done before it was given up")


def _told(tick: Tick, row: Delivery) -> Delivery:
    """What was written where nobody can read it, and never sent again, is said once more, and to nobody: the
    outbox tells of what is given up.
    """
    first = tick.store.first_position(row.event_id)
    shown = {past.epoch: past.shown for past in tick.store.ended_epochs()}
    if first is None or first[1] <= shown.get(first[0], first[1]):
        return row
    if any(other.attempt > 1 for other in tick.store.obligations(row.event_id)):
        return row
    event = decode_event(tick.store.events_about(row.event_id)[0].body)
    again = replace(event, trace=replace(event.trace, attempt=2, first_position=first))
    return replace(row, attempt=2, seq=tick.emit(again, ()))


def notice(tick: Tick, kind: Kind, payload: msgspec.Raw, about: EventId) -> Event:
    """An event of the gateway itself about another one."""
    return Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=kind,
        source_node_id=tick.identity.node,
        corr_id=about,
        created_at=tick.stamp,
        payload=payload,
    )
