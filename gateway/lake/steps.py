"""What one node says at one moment of a story, as data: the steps that plans are made of.

Delays keep clear of every promise: a step that breaks one breaks it by seconds, the others keep it by
seconds, so that skewed clocks change no verdict.
"""

from enum import StrEnum
from typing import NamedTuple

from outbox.kinds import AckStatus, Kind, Outcome

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

SOON = (5, 3 * SECOND)
TURN = (5 * SECOND, 40 * SECOND)
REPLY = (41 * SECOND, 50 * SECOND)
HAVE_REPLY = (55 * SECOND, 58 * SECOND)
LATER = (8 * MINUTE, 20 * MINUTE)


class Who(StrEnum):
    """A node, as a root sees it."""

    SENDER = "sender"
    RECEIVER = "receiver"
    OTHER = "other"
    """A third node: no owner, and sometimes asked nevertheless."""


class Step(NamedTuple):
    """One event of a story."""

    kind: str
    by: Who
    after_ms: tuple[int, int]
    """Shortest and longest time since the root was created."""
    about: int = 0
    """Which event it speaks of: 0 the root, else the number of a step of this plan."""
    to: Who = Who.SENDER
    fields: tuple[tuple[str, str | int], ...] = ()
    """Columns with one value."""
    offsets: tuple[tuple[str, int], ...] = ()
    """Columns with a time: milliseconds after the root was created."""
    to_group: bool = False
    """It goes to an agent of the receiver and to one of the third node, and names neither."""


def root(kind: str = Kind.MESSAGE, attempt: int = 1, to: Who = Who.RECEIVER, **fields: str | int) -> Step:
    """The message itself, one of its attempts."""
    after = (0, 0) if attempt == 1 else (attempt * 2 * SECOND, attempt * 2 * SECOND)
    return Step(kind, Who.SENDER, after, to=to, fields=(("attempt", attempt), *fields.items()))


def ack(
    after_ms: tuple[int, int],
    status: AckStatus = AckStatus.ACCEPTED,
    outcome: Outcome = Outcome.OK,
    *,
    by: Who = Who.RECEIVER,
    about: int = 0,
    to: Who = Who.SENDER,
    **fields: str,
) -> Step:
    """An ACK of the root, or of a later step (``about``)."""
    said = (("status", status), ("outcome", outcome), *fields.items())
    return Step(Kind.ACK, by, after_ms, about=about, to=to, fields=said)


def group() -> Step:
    """The message to an agent of each of two nodes."""
    return root()._replace(to_group=True)


def done(after_ms: tuple[int, int], outcome: Outcome = Outcome.OK, by: Who = Who.RECEIVER) -> Step:
    """The turn ended; the agent was handed the event two seconds after it was created, or more."""
    step = ack(after_ms, AckStatus.PROCESSED, outcome, by=by)
    said = (("error", "the handler died"),) if outcome is Outcome.FAILED else ()
    engaged = (("engagedAt", max(0, after_ms[0] - SECOND)),)
    return step._replace(fields=(*step.fields, *said, ("deliveries", 1)), offsets=engaged)


def answer(kind: str, after_ms: tuple[int, int], **fields: str | int) -> Step:
    """What the receiving agent says in answer."""
    return Step(kind, Who.RECEIVER, after_ms, fields=tuple(fields.items()))


def taken(about: int, after_ms: tuple[int, int]) -> Step:
    """The sender's node has an answer on its disk."""
    return ack(after_ms, by=Who.SENDER, about=about, to=Who.RECEIVER)
