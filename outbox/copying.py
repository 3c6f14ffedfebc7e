"""How a copy of another outbox grows, is trimmed, and is read on from a cursor.

With its checkpoints a copy holds the hash of the chain before its first entry, where that is known. So a page
of it says what it follows on, and its reader can prove that the writer wrote twice: else it would have to
blame whoever brings the page.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from outbox.batch import batch_bytes
from outbox.chain import Entry, Head, Page, extend, genesis
from outbox.cursor import BEGINNING, check_form
from outbox.errors import CursorBelowFloor, CursorPastEnd
from outbox.ids import MeshId, NodeId, Seq
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


def anchor(page: Page) -> Head | None:
    """The place before a page that a copy begins with, where neither its genesis nor a checkpoint says it."""
    first = page.entries[0].seq
    return Head(page.epoch, Seq(first - 1), page.before) if first > 1 and page.before else None


def known_before(copy: Copy, mesh: MeshId, checkpoint: Head | None) -> Head | None:
    """From where the hashes of a copy can be followed: its last checkpoint up to there, or its genesis."""
    if checkpoint is None and copy.first == 1:
        return genesis(mesh, copy.source, copy.epoch)
    return checkpoint


def hash_at(known: Head | None, between: Sequence[Entry], seq: Seq) -> bytes:
    """The chain's hash after an entry, from a known place and what lies between.

    Empty where none is known, and where another connection has let go of what lies between meanwhile.
    """
    if known is None or len(between) != seq - known.seq:
        return b""
    return extend(known, between).hash


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
