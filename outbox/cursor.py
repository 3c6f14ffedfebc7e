"""Where a reader of an outbox may stand, and how far one page takes it.

A cursor is the head that a reader has reached. "From the beginning" is seq 0, which always means the
retention floor: the oldest place that can still be read from.

Source: cursor rules of ``docs/PROTOCOL.md``.
"""

from collections.abc import Iterable

from outbox.chain import Head
from outbox.errors import CursorBelowFloor, CursorPastEnd, ForeignEpoch, InvalidCursor, InvalidId
from outbox.ids import Seq, epoch
from outbox.limits import SEQ_MAX

BEGINNING = Seq(0)
"""The cursor of somebody who has read nothing, and the floor of an outbox that nothing was removed from."""


def check_cursor(after: Head, *, head: Head, floor: Seq = BEGINNING) -> Seq:
    """The seq after which to read, for a cursor in an outbox that is readable from ``floor`` to ``head``.

    ``after.hash`` is not looked at: the chain tells a reader whether its hash was right.
    Raises InvalidCursor (no position at all), ForeignEpoch, CursorPastEnd, CursorBelowFloor.
    """
    _check_form(after)
    if after.epoch != head.epoch:
        raise ForeignEpoch(
            f"epoch {after.epoch} is not the outbox's, which is {head.epoch}", hint="read from 0 of its epoch"
        )
    if after.seq > head.seq:
        raise CursorPastEnd(f"cursor {after.seq} is past the end, {head.seq}")
    if BEGINNING < after.seq < floor:
        raise CursorBelowFloor(f"cursor {after.seq} is below the floor, {floor}", hint="read from 0")
    return max(after.seq, floor)


def _check_form(after: Head) -> None:
    if type(after.seq) is not int or not 0 <= after.seq <= SEQ_MAX:
        raise InvalidCursor(f"{after.seq!r:.40} is not a place in an outbox")
    try:
        epoch(after.epoch)
    except InvalidId:
        raise InvalidCursor(f"{after.epoch!r:.40} is not an epoch") from None


def page_end(
    after: Seq, batches: Iterable[tuple[Seq, int]], *, entries_max: int, bytes_max: int
) -> Seq | None:
    """Where the page after ``after`` ends: the last whole batch within both limits, or the first batch.

    ``batches`` are ``(last seq, bytes)`` of the checkpointed batches that end after the cursor, in order. A
    batch is never cut, since a reader can verify nothing before it holds the checkpoint. None when there is
    no batch.
    """
    end: Seq | None = None
    size = 0
    for last, batch_bytes in batches:
        size += batch_bytes
        if end is not None and (last - after > entries_max or size > bytes_max):
            break
        end = last
    return end
