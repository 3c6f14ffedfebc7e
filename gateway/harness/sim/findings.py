"""What a checker found: which promise is broken, and what shows it."""

from enum import StrEnum

import msgspec


class Promise(StrEnum):
    """The invariants of ``docs/TESTING.md`` that a simulated world is judged by."""

    SENT_IS_KEPT = "I1"
    """Whose sender was told "appended" is in the outbox, in order, once per attempt."""
    ACCEPTED_IS_DURABLE = "I2"
    """``accepted`` never leaves before its row, and nothing before its commit."""
    ENGAGED_ONCE = "I3"
    """One engagement per event and node; handed over again only while it is unacknowledged."""
    EVERY_SEND_ENDS = "I4"
    """Once faults stop every send ends within the bound, and both sides agree."""
    CURSORS_ARE_HONEST = "I5"
    """A cursor never passes what was not handled, and never goes back."""
    ROOMS_CONVERGE = "I6"
    """All replicas of the state room show the same."""
    MEMBERS_ONLY = "I7"
    """Nothing is accepted from a node that is not admitted."""
    LIARS_ARE_REFUSED = "I8"
    """Forged streams are refused and reported; honest nodes are never framed."""
    BLOBS_ARE_WHOLE = "I9"
    """A turn is dealt when its blob is here; what is named is kept, whole, and fetched by whom it is for."""
    JOURNAL_IS_TRUE = "I10"
    """A journal on SQLite answers as its twin in memory, across every death of its process."""
    NO_CRASH = "bug"
    """The program met an error that it has no answer to."""


class Finding(msgspec.Struct, frozen=True):
    """One broken promise."""

    promise: Promise
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"
