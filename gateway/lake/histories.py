"""The other history of an outbox that was written twice: read back to where both agree, and kept as evidence.

A page that does not follow on where the lake stands is no proof by itself. So the source is read once more
from a place that the lake knows (the end of one of its files, or the beginning), where its signed pages do
follow on; an entry that differs below the lake's own place is the proof, since the node has signed both. What
is there from the first such entry on goes beside the events, and the class ``fork`` works without the mesh.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gateway.lake.lake import Lake
from gateway.lake.rows import row_of
from gateway.lake.source import Source
from outbox.chain import Checkpoint, Head, Page, Verify, check_signature, follow, genesis
from outbox.errors import CursorError, PeerError
from outbox.ids import Seq
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.records import Identity
from spark.limits import FORK_ROWS_MAX
from spark.schema import EventRow


def keep_other_history(
    source: Source, lake: Lake, stream: Identity, at: Head, *, verify: Verify, now_ms: int
) -> Seq | None:
    """Keep what a source has in place of what the lake holds up to ``at``; the first entry that differs.

    Raises LakeDamaged, StorageFailed.
    """
    there = replace(stream, epoch=at.epoch)
    first = genesis(there.mesh, there.node, there.epoch)
    for start in (*reversed(lake.heads(there)[:-1]), first):
        pages = _pages(source, start, at, there, verify)
        if pages:
            return _keep(lake, there, pages, now_ms)
    return None


def _pages(source: Source, start: Head, at: Head, stream: Identity, verify: Verify) -> list[Page]:
    """Signed pages that follow on from ``start`` to beyond ``at``; none when they do not."""
    found: list[Page] = []
    head = start
    try:
        while head.seq <= at.seq and head.seq - start.seq < FORK_ROWS_MAX:
            page = source.read(head, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)
            if page is None or page.epoch != start.epoch:
                break
            check_signature(page.checkpoint, stream.mesh, stream.node, verify)
            head = follow(head, page)
            found.append(page)
    except (PeerError, CursorError):
        return []
    return found


def _keep(lake: Lake, stream: Identity, pages: Sequence[Page], now_ms: int) -> Seq | None:
    rows = [row_of(entry, stream, now_ms)[0] for page in pages for entry in page.entries]
    known = lake.digests(stream, Seq(rows[0].seq), Seq(rows[-1].seq))
    differ = next(_differing(rows, known), None)
    if differ is not None:
        _commit(lake, stream, pages[-1].checkpoint, [row for row in rows if row.seq >= differ])
    return differ


def _differing(rows: Sequence[EventRow], known: dict[Seq, int]) -> Iterator[Seq]:
    return (Seq(row.seq) for row in rows if known.get(Seq(row.seq), row.digest) != row.digest)


def _commit(lake: Lake, stream: Identity, end: Checkpoint, rows: Sequence[EventRow]) -> None:
    lake.commit_fork(stream, end, rows)
