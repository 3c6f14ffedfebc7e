"""The own outbox: what was appended, in order."""

from typing import Protocol

from outbox.batch import SealedBatch
from outbox.chain import Entry, Head, Page
from outbox.ids import EventId


class EntryStore(Protocol):
    """Entries and the checkpoints that vouch for them."""

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis."""
        ...

    def append(self, batch: SealedBatch) -> None:
        """Add a batch that follows the head.

        Its headers are indexed: kind, event id, attempt, corrId.
        Raises StorageFailed when it does not follow on or (event id, attempt) exists; nothing but a rollback
        is possible then.
        """
        ...

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream.

        A cursor at (or past) the end of an epoch that ended is read on from in the next one.
        A page holds at least one whole batch even above the limits. ``after.hash`` is not looked at.
        Raises ForeignEpoch, CursorPastEnd, CursorBelowFloor, InvalidCursor (negative seq).
        """
        ...

    def events_about(self, event: EventId) -> list[Entry]:
        """Own entries, of any epoch, that are this event (any attempt) or refer to it by corrId, in order."""
        ...
