"""What can be wrong with a run: the kinds of fault, and one record for each that was found."""

from enum import StrEnum

import msgspec


class FaultKind(StrEnum):
    """Each is a promise of the mesh that was not kept."""

    LOST = "lost"
    """Sent, and neither final nor explained by an open incident."""
    ENGAGED_TWICE = "engaged_twice"
    """Handed over after its ACK was committed, or engaged on two nodes."""
    NOT_IN_OUTBOX = "not_in_outbox"
    """The sender was told "appended", and the outbox does not have it (invariant I1)."""
    OUTBOX = "outbox"
    """An outbox with a hole, a repeated attempt, or a chain that does not verify (I1)."""
    ACCEPTED_WITHOUT_ROW = "accepted_without_row"
    """``accepted`` was said of an event that has no inbox row (I2)."""
    TURN = "turn"
    """A turn whose ledger, ACKs and agent tell different stories (I3)."""
    CURSOR = "cursor"
    """A cursor that passed what was not handled, went back, or points at another history (I5)."""
    FORGOTTEN = "forgotten"
    """What was in a journal before the crash is not in it any more."""
    CRASHED = "crashed"
    """A gateway that ended by itself without a reason, or met a bug of its own."""
    REFUSED = "refused"
    """A send that was refused for good, although nothing was wrong with it."""
    ADMISSION = "admission"
    """Something came from a node that was never admitted, or an invite worked twice (I7)."""
    ROOM = "room"
    """Two gateways that show different rooms (I6)."""
    UNFINISHED = "unfinished"
    """Lines that were not said, or messages still on their way, when the time for all of it was over."""
    PLANTED = "planted"
    """Planted trouble that did not come to its end, or an incident that nobody planted."""
    FRAMED = "framed"
    """A node is blamed that has done no wrong, or one that had forgotten is taken for a liar (I8)."""
    UNREPORTED = "unreported"
    """Two histories, or a turn that was dealt once more, of which nobody says a word (I3, I8)."""
    CLOCK = "clock"
    """Two clocks that disagree although nobody has set them so."""
    REPORT = "report"
    """The Spark report tells another story than the journals (I9)."""


class Fault(msgspec.Struct, frozen=True):
    """One broken promise."""

    kind: FaultKind
    subject: str
    """Event, node or number that it is about."""
    detail: str
