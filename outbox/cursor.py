"""Where a reader of an outbox may stand, and how far one page takes it.

A cursor is the head that a reader has reached. "From the beginning" is seq 0, which always means the
retention floor: the oldest place that can still be read from.

Source: cursor rules of ``docs/PROTOCOL.md``.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from outbox.chain import Head
from outbox.errors import CursorBelowFloor, CursorPastEnd, ForeignEpoch, InvalidCursor, InvalidId
from outbox.ids import Epoch, Seq, epoch, epoch_ordinal
from outbox.limits import SEQ_MAX
from outbox.records import EpochRow

BEGINNING = Seq(0)
"""The cursor of somebody who has read nothing, and the floor of an outbox that nothing was removed from."""


def check_cursor(after: Head, *, head: Head, floor: Seq = BEGINNING) -> Seq:
    """The seq after which to read, for a cursor in an outbox that is readable from ``floor`` to ``head``.

    ``after.hash`` is not looked at: the chain tells a reader whether its hash was right.
    Raises InvalidCursor (no position at all), ForeignEpoch, CursorPastEnd, CursorBelowFloor.
    """
    check_form(after)
    if after.epoch != head.epoch:
        raise ForeignEpoch(
            f"epoch {after.epoch} is not the outbox's, which is {head.epoch}", hint="read from 0 of its epoch"
        )
    if after.seq > head.seq:
        raise CursorPastEnd(f"cursor {after.seq} is past the end, {head.seq}")
    if BEGINNING < after.seq < floor:
        raise CursorBelowFloor(f"cursor {after.seq} is below the floor, {floor}", hint="read from 0")
    return max(after.seq, floor)


class Stretch(NamedTuple):
    """Part of one epoch: what follows a cursor, up to where the epoch goes or is shown."""

    epoch: Epoch
    after: Seq
    end: Seq


def stretch_after(
    after: Head, *, ended: Sequence[EpochRow], head: Head, floor: Head | None = None
) -> Stretch | None:
    """What follows a cursor in an outbox whose earlier epochs (oldest first) are shown so far each.

    ``floor`` is the place up to which the outbox was forgotten, in whichever epoch; None for a whole one.

    Of an epoch that ended nothing more will come: whoever stands at its end, or past it (a reader may hold
    more than its writer remembers), goes on at the beginning of the next one; so does who stands in an
    earlier epoch that the writer has forgotten altogether. None at the end of the stream. Raises as
    ``check_cursor``."""
    check_form(after)
    if after.epoch == head.epoch:
        start = check_cursor(after, head=head, floor=floor_in(after.epoch, floor))
        return None if start == head.seq else Stretch(head.epoch, start, head.seq)
    ordinal = epoch_ordinal(after.epoch)
    if ordinal >= epoch_ordinal(head.epoch):
        check_cursor(after, head=head)
    for row in ended:
        start = floor_in(row.epoch, floor)
        if row.epoch == after.epoch:
            if BEGINNING < after.seq < start:
                raise CursorBelowFloor(f"cursor {after.seq} is below the floor", hint="read from 0")
            start = max(after.seq, start)
        elif row.ordinal <= ordinal:
            continue
        if start < row.shown:
            return Stretch(row.epoch, start, row.shown)
    start = floor_in(head.epoch, floor)
    return Stretch(head.epoch, start, head.seq) if head.seq > start else None


def floor_in(of: Epoch, floor: Head | None) -> Seq:
    """What is forgotten of one epoch: all of those before the floor's."""
    if floor is None or epoch_ordinal(of) > epoch_ordinal(floor.epoch):
        return BEGINNING
    return floor.seq if of == floor.epoch else Seq(SEQ_MAX)


def check_form(after: Head) -> None:
    """Raises InvalidCursor for what is no position at all."""
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
