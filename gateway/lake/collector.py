"""Reads one outbox into the lake: verify, make rows, commit, from wherever the lake says it stands.

Nothing unverified gets in. When a stream turns out broken, what came before the break is kept and the error
is raised, so that a report can still be made of it. Where a node has signed two histories both are kept
(``gateway.lake.histories``). An outbox may have several epochs: all of them are
collected, each into files of its own, an earlier one also after a later one. What its writer had forgotten
before it was collected is noted as such; what merely is not here is missing, and shows.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.lake.histories import keep_other_history
from gateway.lake.holes import holes
from gateway.lake.lake import Lake
from gateway.lake.rows import row_of
from gateway.lake.source import Source
from outbox.chain import Checkpoint, Head, Page, Verify, check_signature, follow, genesis
from outbox.errors import BrokenChain, CursorBelowFloor, CursorError, CursorPastEnd, PeerError, StreamForked
from outbox.ids import Epoch, Seq, epoch_ordinal, make_epoch
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.records import Identity, Quarantined
from spark.limits import FILE_ROWS_MAX
from spark.schema import EventRow

Progress = Callable[[Seq], None]
"""Called with the position reached, after it is on disk."""


_Fault = PeerError | CursorPastEnd


_NO_END = Seq(2**63 - 1)


class Collected(msgspec.Struct, frozen=True):
    """What one run of the collector added."""

    head: Head
    """Where the lake stands now."""
    rows: int
    files: int
    flagged: int
    """Rows with a doubt about them."""
    quarantined: int
    """Entries whose bytes are no event."""


class _Chunk(msgspec.Struct):
    """Entries on their way into one file."""

    head: Head
    before: Head
    """What the first of them follows on."""
    rows: list[EventRow]
    bad: list[Quarantined]
    checkpoint: Checkpoint | None = None
    """Where its rows end; None when it has none."""
    fault: _Fault | None = None
    ended: bool = False
    """There is no more to read."""


class _Work(NamedTuple):
    """What all steps of one run have in common."""

    source: Source
    lake: Lake
    stream: Identity
    verify: Verify
    now_ms: int
    progress: Progress


def collect(
    source: Source,
    lake: Lake,
    stream: Identity,
    verify: Verify,
    *,
    now_ms: int,
    progress: Progress,
    earlier: Source | None = None,
    fills: bool = True,
) -> Collected:
    """Bring the lake up to the end of an outbox; ``now_ms`` is what its times are checked against.

    Of ``stream`` mesh and node count: which epochs there are, the source says. ``earlier`` is read for epochs
    before that in which the lake stands: for what follows in those that it has, and for those that it lacks.
    With ``fills`` the source is asked for what is missing before that (``gateway.lake.holes``).

    Raises BrokenChain, BadCheckpoint or StreamForked (what came before is kept), LakeBusy, LakeDamaged,
    StorageFailed and the cursor errors of ``read``.
    """
    work = _Work(source, lake, stream, verify, now_ms, progress)
    with lake.lock():
        start = lake.cursor(stream.mesh, stream.node) or source.genesis()
        done, fault = _bring(work, Collected(start, 0, 0, 0, 0))
        if earlier is not None:
            done, older = _bring_earlier(work._replace(source=earlier), done)
            fault = fault or older
        if fault is None and fills:
            done = _fill_holes(work, done, earlier)
    if fault is not None:
        raise fault
    return done


def _bring(
    work: _Work, done: Collected, only: Epoch | None = None, until: Seq = _NO_END
) -> tuple[Collected, _Fault | None]:
    """Add what follows where ``done`` stands; of ``only`` this epoch, if it is given, and up to ``until``."""
    while True:
        chunk = _next_chunk(work, done.head, only, until)
        _note_forgotten(work, done.head, chunk)
        if chunk.checkpoint is not None:
            there = replace(work.stream, epoch=chunk.head.epoch)
            work.lake.commit(there, chunk.checkpoint, chunk.rows, chunk.bad)
            done = _add(done, chunk)
            work.progress(done.head.seq)
        if isinstance(chunk.fault, CursorPastEnd) and only is not None:
            return done, None  # of an earlier epoch the lake has more than this source
        if chunk.fault is not None:
            return done, _fork_instead(work, done.head, chunk.fault)
        if chunk.ended:
            return done, None


def _bring_earlier(work: _Work, done: Collected) -> tuple[Collected, _Fault | None]:
    """Add what a source has of epochs before the one in which ``done`` stands.

    What their writer has forgotten may be in a copy all the same: it is evidence of what was said, and nobody
    engages it here. An epoch of which the lake has two histories is left as it is.
    """
    current, first_fault = done.head, None
    try:
        for place in _earlier_places(work, current.epoch):
            if work.lake.has_other(replace(work.stream, epoch=place.epoch)):
                continue
            added, fault = _bring(work, replace(done, head=place), place.epoch)
            done = replace(added, head=current)
            first_fault = first_fault or fault
    except PeerError as fault:
        return done, first_fault or fault
    except CursorError:
        pass  # its outbox ends before
    return done, first_fault


def _fill_holes(work: _Work, done: Collected, earlier: Source | None) -> Collected:
    """Add what a source has of what is missing before other entries, or its writer's word that it forgot it.

    One that has nothing to say to it, or something that does not fit, is no fault: the hole shows.
    """
    current = done.head
    for after, last in holes(work.lake, work.stream.mesh, work.stream.node):
        source = work.source if after.epoch == current.epoch else earlier
        if source is not None:
            with suppress(PeerError, CursorError):
                done, _ = _bring(work._replace(source=source), replace(done, head=after), after.epoch, last)
    return replace(done, head=current)


def _earlier_places(work: _Work, current: Epoch) -> Iterator[Head]:
    """Where the lake stands in earlier epochs, and the beginnings of those that only the source has.

    Who stands before all epochs is served the first that there is; who stands after one, the next.
    """
    mesh, node = work.stream.mesh, work.stream.node
    ends = (head for head in work.lake.ends(mesh, node) if _is_before(head.epoch, current))
    known = {head.epoch: head for head in ends}
    yield from known.values()
    after = -1
    while page := work.source.read(genesis(mesh, node, make_epoch(after + 1, bytes(6))), 1, 1):
        if epoch_ordinal(page.epoch) <= after or not _is_before(page.epoch, current):
            return
        after = epoch_ordinal(page.epoch)
        if page.epoch not in known:
            yield genesis(mesh, node, page.epoch)


def _is_before(epoch: Epoch, other: Epoch) -> bool:
    return epoch_ordinal(epoch) < epoch_ordinal(other)


def _fork_instead(work: _Work, at: Head, fault: _Fault) -> _Fault:
    """What does not follow on, or ends before it, may be another history; else it is what it is."""
    if not isinstance(fault, BrokenChain | CursorPastEnd):
        return fault
    source, lake, stream = work.source, work.lake, work.stream
    first = keep_other_history(source, lake, stream, at, verify=work.verify, now_ms=work.now_ms)
    if first is None:
        return fault
    return StreamForked(
        f"{stream.node} has signed two histories of {at.epoch}, which differ from entry {first} on",
        hint="both are kept, and reports show the fork; was a backup put back, or does a copy run?",
    )


def _note_forgotten(work: _Work, after: Head, chunk: _Chunk) -> None:
    """What stands between where the lake stood and where its writer's outbox begins is nowhere to be had."""
    floor = work.source.floor() if work.source.is_writer else None
    if floor is None or chunk.before != floor.head:
        return
    first = after.seq + 1 if after.epoch == floor.epoch else 1
    if first <= floor.seq:
        work.lake.note_forgotten(replace(work.stream, epoch=floor.epoch), Seq(first), floor)


def _next_chunk(work: _Work, after: Head, only: Epoch | None, until: Seq) -> _Chunk:
    """Entries of one epoch: as many as go into one file, or as there are, or are wanted."""
    stream, chunk = work.stream, _Chunk(after, after, [], [], ended=after.seq >= until)
    while len(chunk.rows) < FILE_ROWS_MAX and chunk.head.seq < until:
        try:
            page, start = _next_page(work, chunk.head, min(PAGE_ENTRIES_MAX, until - chunk.head.seq))
            if page is None or only not in {None, page.epoch}:
                chunk.ended = True
                break
            if chunk.rows and start != chunk.head:
                break  # another epoch, or what follows on a hole, goes into its own file
            chunk.before = start if not chunk.rows else chunk.before
            if start.seq >= until:  # all of it, or what is left of it, is not here
                chunk.ended = True
                break
            check_signature(page.checkpoint, stream.mesh, stream.node, work.verify)
            chunk.head = follow(start, page)
        except (PeerError, CursorPastEnd) as fault:
            chunk.fault = fault
            break
        chunk.checkpoint = page.checkpoint
        _take(chunk, page, replace(stream, epoch=page.epoch), work.now_ms)
    return chunk


def _next_page(work: _Work, after: Head, entries_max: int) -> tuple[Page | None, Head]:
    """The page after a head, and the head that it follows: where an epoch begins, or what is left of it."""
    source, stream = work.source, work.stream
    try:
        page = source.read(after, entries_max, PAGE_BYTES_MAX)
    except CursorBelowFloor:
        page = source.read(replace(after, seq=Seq(0)), entries_max, PAGE_BYTES_MAX)
    if page is None or (page.epoch == after.epoch and page.entries[0].seq == after.seq + 1):
        return page, after
    floor = source.floor()
    if floor is not None and floor.epoch == page.epoch and floor.seq + 1 == page.entries[0].seq:
        check_signature(floor, stream.mesh, stream.node, work.verify)
        return page, floor.head
    if epoch_ordinal(page.epoch) > epoch_ordinal(after.epoch):
        return page, genesis(stream.mesh, stream.node, page.epoch)
    return page, after


def _take(chunk: _Chunk, page: Page, stream: Identity, now_ms: int) -> None:
    for entry in page.entries:
        row, bad = row_of(entry, stream, now_ms)
        chunk.rows.append(row)
        if bad is not None:
            chunk.bad.append(bad)


def together(first: Collected, then: Collected) -> Collected:
    """What two runs added, one after the other."""
    return Collected(
        head=then.head,
        rows=first.rows + then.rows,
        files=first.files + then.files,
        flagged=first.flagged + then.flagged,
        quarantined=first.quarantined + then.quarantined,
    )


def _add(done: Collected, chunk: _Chunk) -> Collected:
    flagged = sum(row.flags is not None for row in chunk.rows)
    return together(done, Collected(chunk.head, len(chunk.rows), 1, flagged, len(chunk.bad)))
