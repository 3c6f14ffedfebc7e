"""How a copy of another outbox grows, is trimmed, and is read on from a cursor."""

from collections.abc import Sequence

from msgspec.structs import replace

from outbox.batch import batch_bytes
from outbox.chain import Head, Page
from outbox.cursor import BEGINNING, check_form
from outbox.errors import CursorBelowFloor, CursorPastEnd
from outbox.ids import NodeId, Seq
from outbox.records import Copy


def follows(copy: Copy | None, page: Page) -> bool:
    """Whether a page can be added to a copy without a hole."""
    return copy is not None and page.entries[0].seq == copy.last + 1


def begun(source: NodeId, number: int, page: Page, now_ms: int) -> Copy:
    """A new copy that holds one page."""
    reached = page.checkpoint
    return Copy(
        source=source,
        epoch=page.epoch,
        number=number,
        first=page.entries[0].seq,
        last=reached.seq,
        hash=reached.hash,
        signature=reached.signature,
        bytes=batch_bytes(page.entries),
        oldest_at_ms=now_ms,
    )


def grown(copy: Copy, page: Page) -> Copy:
    """A copy with one page more."""
    reached = page.checkpoint
    size = copy.bytes + batch_bytes(page.entries)
    return replace(copy, last=reached.seq, hash=reached.hash, signature=reached.signature, bytes=size)


def trimmed(copy: Copy, upto: Seq, size: int, oldest_at_ms: int) -> Copy:
    """A copy without what stood up to a place, which had so many bytes."""
    return replace(copy, first=Seq(upto + 1), bytes=copy.bytes - size, oldest_at_ms=oldest_at_ms)


def copy_after(copies: Sequence[Copy], after: Head) -> tuple[Copy, Seq] | None:
    """Which copy of a node's outbox goes on after a cursor, and where; ``copies`` has one an epoch, in order.

    None at the end of what is here, and when nothing here can follow.
    Raises InvalidCursor, CursorPastEnd, CursorBelowFloor.
    """
    check_form(after)
    for copy in copies:
        if copy.epoch == after.epoch and after.seq > copy.last:
            raise CursorPastEnd(f"cursor {after.seq} is past the end of the copy, {copy.last}")
        if copy.epoch == after.epoch and after.seq < copy.last:
            return copy, _place_in(copy, after.seq)
        if copy.epoch > after.epoch and copy.first == 1:
            return copy, BEGINNING
    return None


def _place_in(copy: Copy, seq: Seq) -> Seq:
    if seq + 1 < copy.first:
        raise CursorBelowFloor(f"the copy begins at {copy.first}", hint="read from another node")
    return seq
