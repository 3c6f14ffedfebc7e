"""Reads one outbox into the lake: verify, make rows, commit, from wherever the lake says it stands.

Nothing unverified gets in. When a stream turns out broken, what came before the break is kept and the error
is raised, so that a report can still be made of it.
"""

from collections.abc import Callable

import msgspec

from gateway.lake.lake import Lake
from gateway.lake.rows import row_of
from outbox.chain import Checkpoint, Head, Page, Verify, check_signature, follow
from outbox.errors import PeerError
from outbox.ids import Seq
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.records import Identity, Quarantined
from spark.limits import FILE_ROWS_MAX
from spark.schema import EventRow

ReadPage = Callable[[Head, int, int], Page | None]
"""``read(after, entries_max, bytes_max)``: as ``outbox.store.Store.read``."""

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
    rows: list[EventRow]
    bad: list[Quarantined]
    checkpoint: Checkpoint | None = None
    fault: PeerError | None = None


def collect(
    read: ReadPage, lake: Lake, stream: Identity, verify: Verify, *, now_ms: int, progress: Progress
) -> Collected:
    """Bring the lake up to the end of an outbox; ``now_ms`` is what its times are checked against.

    Raises BrokenChain or BadCheckpoint (what came before is kept), LakeBusy, LakeDamaged, StorageFailed and
    the cursor errors of ``read``.
    """
    with lake.lock():
        done = Collected(lake.cursor(stream), 0, 0, 0, 0)
        while True:
            chunk = _next_chunk(read, done.head, stream, verify, now_ms)
            if chunk.checkpoint is not None:
                lake.commit(stream, chunk.checkpoint, chunk.rows, chunk.bad)
                done = _add(done, chunk)
                progress(done.head.seq)
            if chunk.fault is not None:
                raise chunk.fault
            if len(chunk.rows) < FILE_ROWS_MAX:
                return done


def _next_chunk(read: ReadPage, after: Head, stream: Identity, verify: Verify, now_ms: int) -> _Chunk:
    chunk = _Chunk(after, [], [])
    while len(chunk.rows) < FILE_ROWS_MAX:
        page = read(chunk.head, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
        if page is None:
            break
        try:
            check_signature(page.checkpoint, stream.mesh, stream.node, verify)
            chunk.head = follow(chunk.head, page)
        except PeerError as fault:
            chunk.fault = fault
            break
        chunk.checkpoint = page.checkpoint
        _take(chunk, page, stream, now_ms)
    return chunk


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
