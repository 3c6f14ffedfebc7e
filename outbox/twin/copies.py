"""Copies of other outboxes in memory."""

from dataclasses import dataclass, field

from outbox.batch import batch_bytes
from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.copying import anchor, begun, copy_after, follows, grown, hash_at, known_before, trimmed
from outbox.cursor import page_end
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.records import Copy, Identity
from outbox.twin.transaction import Transaction


@dataclass(slots=True)
class _Batch:
    checkpoint: Checkpoint
    size: int
    copied_at_ms: int


@dataclass(slots=True)
class _Content:
    """What one copy holds, by position."""

    entries: dict[Seq, Entry] = field(default_factory=dict)
    batches: dict[Seq, _Batch] = field(default_factory=dict)
    heads: dict[Seq, Head] = field(default_factory=dict)
    """Of the batches, and of what stands before the first one."""


class TwinCopies(Transaction):
    """``outbox.store.copies`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._copies: dict[tuple[NodeId, Epoch], Copy] = {}
        self._contents: dict[int, _Content] = {}

    def copies(self) -> list[Copy]:
        """All of them, by node and epoch."""
        return [copy for _, copy in sorted(self._copies.items())]

    def copy(self, source: NodeId) -> Copy | None:
        """The one of a node's latest epoch."""
        found = self._copies_of(source)
        return found[-1] if found else None

    def extend_copy(self, source: NodeId, page: Page, now_ms: int) -> Copy:
        """Add a page; a copy that it does not follow on is begun anew with it."""
        reached, size = page.checkpoint, batch_bytes(page.entries)
        copy = self._copies.get((source, page.epoch))
        if copy is not None and follows(copy, page):
            copy = grown(copy, page)
        else:
            if copy is not None:
                self._drop_copy(copy)
            copy = begun(source, max(self._contents, default=0) + 1, page, now_ms)
            self._set(self._contents, copy.number, _Content())
            if (before := anchor(page)) is not None:
                self._set(self._contents[copy.number].heads, before.seq, before)
        content = self._contents[copy.number]
        for entry in page.entries:
            self._set(content.entries, entry.seq, entry)
        self._set(content.batches, reached.seq, _Batch(reached, size, now_ms))
        self._set(content.heads, reached.seq, reached.head)
        self._set(self._copies, (source, page.epoch), copy)
        return copy

    def trim_copy(self, copy: Copy, batches: int) -> Copy | None:
        """Let go of so many batches at its beginning; None when nothing is left."""
        content = self._contents[copy.number]
        ends = sorted(content.batches)
        if len(ends) <= batches:
            self._drop_copy(copy)
            return None
        if not batches:
            return copy
        gone, following = ends[:batches], content.batches[ends[batches]]
        size = sum(content.batches[end].size for end in gone)
        for seq in range(copy.first, gone[-1] + 1):
            self._drop(content.entries, Seq(seq))
        for end in gone:
            self._drop(content.batches, end)
        for before in [seq for seq in content.heads if seq < gone[-1]]:
            self._drop(content.heads, before)
        rest = trimmed(copy, gone[-1], size, following.copied_at_ms)
        self._set(self._copies, (copy.source, copy.epoch), rest)
        return rest

    def copied_about(self, event: EventId, since_ms: int, limit: int) -> list[tuple[NodeId, Epoch, Entry]]:
        """Entries whose headers name an event, of what was copied since a time: so many of each copy."""
        found = []
        for copy in self.copies():
            content = self._contents[copy.number]
            old = [end for end, batch in content.batches.items() if batch.copied_at_ms < since_ms]
            start = max(old, default=0)
            entries = [content.entries[seq] for seq in sorted(content.entries) if seq > start]
            named = [entry for entry in entries if event.encode() in entry.header]
            found += [(copy.source, copy.epoch, entry) for entry in named[:limit]]
        return found

    def read_copy(self, source: NodeId, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows a cursor in a copy, up to a checkpoint. Raises CursorError branches."""
        found = copy_after(self._copies_of(source), after)
        if found is None:
            return None
        copy, start = found
        content = self._contents[copy.number]
        sizes = ((end, content.batches[end].size) for end in sorted(content.batches) if end > start)
        end = page_end(start, sizes, entries_max=entries_max, bytes_max=bytes_max)
        assert end is not None, "a copy ends in a checkpoint"
        entries = tuple(content.entries[Seq(seq)] for seq in range(start + 1, end + 1))
        return Page(copy.epoch, entries, content.batches[end].checkpoint, self._hash_at(copy, start))

    def _hash_at(self, copy: Copy, seq: Seq) -> bytes:
        content = self._contents[copy.number]
        place = max((head for head in content.heads if head <= seq), default=None)
        known = known_before(copy, self._identity.mesh, None if place is None else content.heads[place])
        places = range(known.seq + 1, seq + 1) if known is not None else ()
        return hash_at(known, [content.entries[Seq(each)] for each in places], seq)

    def _copies_of(self, source: NodeId) -> list[Copy]:
        return [copy for copy in self.copies() if copy.source == source]

    def _drop_copy(self, copy: Copy) -> None:
        self._drop(self._copies, (copy.source, copy.epoch))
        self._drop(self._contents, copy.number)
