"""Verified copies of other nodes' outboxes: what this node can serve on in their stead.

A copy is a stretch of one epoch without holes, verbatim, up to a checkpoint of its writer. It grows at its
end together with the cursor, in one transaction, and is trimmed at its beginning, batch by batch.
"""

from typing import Protocol

from outbox.chain import Entry, Head, Page
from outbox.ids import Epoch, EventId, NodeId
from outbox.records import Copy


class CopyStore(Protocol):
    """One stretch for each epoch of each other node."""

    def copies(self) -> list[Copy]:
        """All of them, by node; of one node the earlier epoch first."""
        ...

    def copy(self, source: NodeId) -> Copy | None:
        """The one of a node's latest epoch."""
        ...

    def extend_copy(self, source: NodeId, page: Page, now_ms: int) -> Copy:
        """Add a page that was verified; a copy that it does not follow on is begun anew with it.

        Returns the copy as it is now.
        """
        ...

    def trim_copy(self, copy: Copy, batches: int) -> Copy | None:
        """Let go of so many batches at its beginning; None when nothing is left, and the copy is gone."""
        ...

    def copied_about(self, event: EventId, since_ms: int, limit: int) -> list[tuple[NodeId, Epoch, Entry]]:
        """Entries whose headers name an event, of what was copied since a time: so many of each copy at most.

        There is no index: copies are searched from that time on.
        """
        ...

    def read_copy(self, source: NodeId, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows a cursor in a copy, up to a checkpoint; None at its end, or when there is none.

        Whoever stands at the end of an epoch's copy goes on at the beginning of the next one's, if that is
        whole. ``after.hash`` is not looked at.
        Raises InvalidCursor, CursorPastEnd, CursorBelowFloor.
        """
        ...
