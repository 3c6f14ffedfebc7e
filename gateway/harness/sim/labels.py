"""What the agents of a world say beside the content, drawn from keys and ids, so that judges know it.

Labels of what is sent are schema and trace; of a turn that takes long it is when and what its agent promises.

The draw takes nothing from the dice: worlds go as they went without labels.
"""

from hashlib import sha256
from typing import NamedTuple

from outbox.envelope import Event
from outbox.ids import EventId
from outbox.kinds import Kind


class Expected(NamedTuple):
    """What an agent says of a turn that takes long."""

    eta_ms: int | None
    plan: str | None


class Labels(NamedTuple):
    """What an agent says beside the content."""

    schema: str | None
    traceparent: str | None


def labels_of(key: str) -> Labels:
    """Of the message that is sent under this key: both, one of them, or none."""
    digest = sha256(key.encode()).hexdigest()
    schema = f"sim/{key}@v1" if int(digest[0], 16) & 1 else None
    return Labels(schema, f"00-{digest[:32]}-{digest[32:48]}-01" if int(digest[0], 16) & 2 else None)


def promise_of(event: EventId) -> Expected:
    """Of whoever works on this event: both, one of them, or none."""
    digest = sha256(event.encode()).digest()
    eta_ms = 1_800_000_000_000 + int.from_bytes(digest[1:5]) if digest[0] & 1 else None
    return Expected(eta_ms, f"plan of {event}" if digest[0] & 2 else None)


def mislabelled(event: Event, question: Event | None) -> str | None:
    """What is wrong with the labels of an event in the hands of an agent; None if nothing is."""
    said = Labels(event.schema, event.trace.traceparent)
    if event.kind == Kind.REPLY:
        answers = question is not None and question.trace.traceparent != said.traceparent
        return f"{event.event_id} left the trace of {event.corr_id}" if answers else None
    if event.idempotency_key is None or said == labels_of(event.idempotency_key):
        return None  # what was sent again by an operator has no key
    return f"{event.event_id} has other labels than it was sent with: {said}"
