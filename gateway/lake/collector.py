"""Reads one outbox into the lake: verify, make rows, commit, from wherever the lake says it stands.

Nothing unverified gets in. When a stream turns out broken, what came before the break is kept and the error
is raised, so that a report can still be made of it. Where a node has signed two histories both are kept
(``gateway.lake.histories``). An outbox may have several epochs: all of them are
collected, each into files of its own. What its writer had forgotten before it was collected is noted as such;
what merely is not here is missing, and shows.
"""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from gateway.lake.histories import keep_other_history
from gateway.lake.lake import Lake
from gateway.lake.rows import row_of
from gateway.lake.source import Source
from outbox.chain import Checkpoint, Head, Page, Verify, check_signature, follow, genesis
from outbox.errors import BrokenChain, CursorBelowFloor, CursorPastEnd, PeerError, StreamForked
from outbox.ids import Seq, epoch_ordinal
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.records import Identity, Quarantined
from spark.limits import FILE_ROWS_MAX
from spark.schema import EventRow

Progress = Callable[[Seq], None]
"""Called with the position reached, after it is on disk."""


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
    fault: PeerError | CursorPastEnd | None = None
    ended: bool = False
    """There is no more to read."""


def collect(
    source: Source, lake: Lake, stream: Identity, verify: Verify, *, now_ms: int, progress: Progress
) -> Collected:
    """Bring the lake up to the end of an outbox; ``now_ms`` is what its times are checked against.

    Of ``stream`` mesh and node count: which epochs there are, the source says.

    Raises BrokenChain, BadCheckpoint or StreamForked (what came before is kept), LakeBusy, LakeDamaged,
    StorageFailed and the cursor errors of ``read``.
    """
    with lake.lock():
        done = Collected(lake.cursor(stream.mesh, stream.node) or source.genesis(), 0, 0, 0, 0)
        while True:
            chunk = _next_chunk(source, done.head, stream, verify, now_ms)
            if chunk.checkpoint is not None:
                _note_forgotten(source, lake, stream, done.head, chunk)
                lake.commit(replace(stream, epoch=chunk.head.epoch), chunk.checkpoint, chunk.rows, chunk.bad)
                done = _add(done, chunk)
                progress(done.head.seq)
            if isinstance(chunk.fault, BrokenChain | CursorPastEnd):
                _look_for_a_fork(source, lake, stream, done.head, verify=verify, now_ms=now_ms)
            if chunk.fault is not None:
                raise chunk.fault
            if chunk.ended:
                return done


def _look_for_a_fork(
    source: Source, lake: Lake, stream: Identity, at: Head, *, verify: Verify, now_ms: int
) -> None:
    """What does not follow on, or ends before it, may be another history. Raises StreamForked."""
    first = keep_other_history(source, lake, stream, at, verify=verify, now_ms=now_ms)
    if first is not None:
        raise StreamForked(
            f"{stream.node} has signed two histories of {at.epoch}, which differ from entry {first} on",
            hint="both are kept, and reports show the fork; was a backup put back, or does a copy run?",
        )


def _note_forgotten(source: Source, lake: Lake, stream: Identity, after: Head, chunk: _Chunk) -> None:
    """What stands between where the lake stood and where its writer's outbox begins is nowhere to be had."""
    floor = source.floor() if source.is_writer else None
    if floor is None or chunk.before != floor.head:
        return
    first = after.seq + 1 if after.epoch == floor.epoch else 1
    if first <= floor.seq:
        lake.note_forgotten(replace(stream, epoch=floor.epoch), Seq(first), floor)


def _next_chunk(source: Source, after: Head, stream: Identity, verify: Verify, now_ms: int) -> _Chunk:
    """Entries of one epoch: as many as go into one file, or as there are."""
    chunk = _Chunk(after, after, [], [])
    while len(chunk.rows) < FILE_ROWS_MAX:
        try:
            page, start = _next_page(source, chunk.head, stream, verify)
            if page is None:
                chunk.ended = True
                break
            if chunk.rows and start != chunk.head:
                break  # another epoch, or what follows on a hole, goes into its own file
            chunk.before = start if not chunk.rows else chunk.before
            check_signature(page.checkpoint, stream.mesh, stream.node, verify)
            chunk.head = follow(start, page)
        except (PeerError, CursorPastEnd) as fault:
            chunk.fault = fault
            break
        chunk.checkpoint = page.checkpoint
        _take(chunk, page, replace(stream, epoch=page.epoch), now_ms)
    return chunk


def _next_page(source: Source, after: Head, stream: Identity, verify: Verify) -> tuple[Page | None, Head]:
    """The page after a head, and the head that it follows: where an epoch begins, or what is left of it."""
    try:
        page = source.read(after, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
    except CursorBelowFloor:
        page = source.read(replace(after, seq=Seq(0)), PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
    if page is None or (page.epoch == after.epoch and page.entries[0].seq == after.seq + 1):
        return page, after
    floor = source.floor()
    if floor is not None and floor.epoch == page.epoch and floor.seq + 1 == page.entries[0].seq:
        check_signature(floor, stream.mesh, stream.node, verify)
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


def _add(done: Collected, chunk: _Chunk) -> Collected:
    return Collected(
        head=chunk.head,
        rows=done.rows + len(chunk.rows),
        files=done.files + 1,
        flagged=done.flagged + sum(row.flags is not None for row in chunk.rows),
        quarantined=done.quarantined + len(chunk.bad),
    )
