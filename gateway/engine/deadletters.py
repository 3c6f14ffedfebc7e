"""What an operator may ask about dead letters: inputs of the engine, like those of ``inputs``."""

import msgspec

from outbox.ids import EventId


class Redrive(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An operator sends a dead letter again, as a new event. Answer: Sent."""

    req: int
    event_id: EventId
    expires_in_ms: int | None = None


class Dismiss(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An operator has seen enough of some dead letters: they are not listed any more. Answer: Dismissed."""

    req: int
    event_ids: tuple[EventId, ...] = ()
    """These; none: all that were given up before a time."""
    before_ms: int = 0
