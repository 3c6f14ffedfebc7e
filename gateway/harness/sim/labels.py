"""Labels of the events of a world: schema and trace, drawn from the key of each, so that a judge knows them.

The draw takes nothing from the dice: worlds go as they went without labels.
"""

from hashlib import sha256
from typing import NamedTuple

from outbox.envelope import Event
from outbox.kinds import Kind


class Labels(NamedTuple):
    """What an agent says beside the content."""

    schema: str | None
    traceparent: str | None


def labels_of(key: str) -> Labels:
    """Of the message that is sent under this key: both, one of them, or none."""
    digest = sha256(key.encode()).hexdigest()
    schema = f"sim/{key}@v1" if int(digest[0], 16) & 1 else None
    return Labels(schema, f"00-{digest[:32]}-{digest[32:48]}-01" if int(digest[0], 16) & 2 else None)


def mislabelled(event: Event, question: Event | None) -> str | None:
    """What is wrong with the labels of an event in the hands of an agent; None if nothing is."""
    said = Labels(event.schema, event.trace.traceparent)
    if event.kind == Kind.REPLY:
        answers = question is not None and question.trace.traceparent != said.traceparent
        return f"{event.event_id} left the trace of {event.corr_id}" if answers else None
    if event.idempotency_key is None or said == labels_of(event.idempotency_key):
        return None  # what was sent again by an operator has no key
    return f"{event.event_id} has other labels than it was sent with: {said}"
