"""Copies of other outboxes in SQL."""

from collections.abc import Sequence

from outbox.batch import batch_bytes
from outbox.blobref import named_blob
from outbox.chain import Checkpoint, Entry, Head, Page
from outbox.copying import anchor, begun, copy_after, follows, grown, hash_at, known_before, trimmed
from outbox.cursor import page_end
from outbox.errors import StorageFailed
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.limits import SEQ_MAX
from outbox.records import Copy, Identity
from outbox.schema import copied, seq_of
from outbox.sql.rows import Asking, Writing
from outbox.tables import COPIES, insert, portions

_ENTRY_COLUMNS = ("position", "header", "body", "blob")


class CopyReads(Asking):
    """The questions of ``outbox.store.copies``."""

    _identity: Identity

    def copies(self) -> list[Copy]:
        """All of them, by node and epoch."""
        return self._rows.all(COPIES, "ORDER BY source, epoch")

    def copy(self, source: NodeId) -> Copy | None:
        """The one of a node's latest epoch."""
        found = self._copies_of(source)
        return found[-1] if found else None

    def read_copy(self, source: NodeId, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """What follows a cursor in a copy, up to a checkpoint. Raises CursorError branches."""
        found = copy_after(self._copies_of(source), after)
        if found is None:
            return None
        copy, start = found
        batches = self._rows.database.rows(
            "SELECT position, bytes FROM copied_checkpoints WHERE position > ? AND position <= ?"
            " ORDER BY position LIMIT ?",
            (copied(copy.number, start), copied(copy.number, copy.last), max(entries_max, 1) + 1),
        )
        sizes = ((seq_of(key), size) for key, size in batches)
        end = page_end(start, sizes, entries_max=entries_max, bytes_max=bytes_max)
        if end is None:
            raise StorageFailed(f"the copy of {source} has no checkpoint after {start}")
        entries, before = self._copied_entries(copy, start, end), self._copied_hash(copy, start)
        return Page(copy.epoch, entries, self._copied_checkpoint(copy, end), before)

    def copied_about(self, event: EventId, since_ms: int, limit: int) -> list[tuple[NodeId, Epoch, Entry]]:
        """Entries whose headers name an event, of what was copied since a time: so many of each copy."""
        return [
            (copy.source, copy.epoch, Entry(seq_of(key), header, body))
            for copy in self.copies()
            for key, header, body in self._rows.database.rows(
                "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM copied_entries"
                " WHERE position > ? AND position <= ? AND INSTR(CAST(header AS BLOB), ?)"
                " ORDER BY position LIMIT ?",
                (self._copied_by(copy, since_ms), copied(copy.number, copy.last), event.encode(), limit),
            )
        ]

    def _copied_by(self, copy: Copy, at_ms: int) -> int:
        """The key up to which a copy was there before a time."""
        ((key,),) = self._rows.database.rows(
            "SELECT MAX(position) FROM copied_checkpoints"
            " WHERE position BETWEEN ? AND ? AND copied_at_ms < ?",
            (copied(copy.number, Seq(0)), copied(copy.number, copy.last), at_ms),
        )
        return int(key) if key is not None else copied(copy.number, Seq(0))

    def _copies_of(self, source: NodeId) -> list[Copy]:
        return self._rows.all(COPIES, "WHERE source = ? ORDER BY epoch", source)

    def _copied_entries(self, copy: Copy, start: Seq, end: Seq) -> tuple[Entry, ...]:
        rows = self._rows.database.rows(
            "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM copied_entries"
            " WHERE position > ? AND position <= ? ORDER BY position",
            (copied(copy.number, start), copied(copy.number, end)),
        )
        return tuple(Entry(seq_of(key), header, body) for key, header, body in rows)

    def _copied_hash(self, copy: Copy, seq: Seq) -> bytes:
        found = self._rows.database.rows(
            "SELECT position, CAST(hash AS BLOB) FROM copied_checkpoints WHERE position BETWEEN ? AND ?"
            " ORDER BY position DESC LIMIT 1",
            (copied(copy.number, Seq(0)), copied(copy.number, seq)),
        )
        checkpoint = Head(copy.epoch, seq_of(found[0][0]), found[0][1]) if found else None
        known = known_before(copy, self._identity.mesh, checkpoint)
        between = self._copied_entries(copy, known.seq, seq) if known is not None else ()
        return hash_at(known, between, seq)

    def _copied_checkpoint(self, copy: Copy, seq: Seq) -> Checkpoint:
        digest, signature = self._rows.database.rows(
            "SELECT CAST(hash AS BLOB), CAST(signature AS BLOB) FROM copied_checkpoints WHERE position = ?",
            (copied(copy.number, seq),),
        )[0]
        return Checkpoint(self._identity.mesh, copy.source, copy.epoch, seq, digest, signature)


class CopyWrites(Writing, CopyReads):
    """What the writer adds."""

    def extend_copy(self, source: NodeId, page: Page, now_ms: int) -> Copy:
        """Add a page; a copy that it does not follow on is begun anew with it."""
        self._rows.need_transaction()
        reached, size = page.checkpoint, batch_bytes(page.entries)
        copy = self._rows.find(COPIES, source, page.epoch)
        if copy is not None and follows(copy, page):
            copy = grown(copy, page)
        else:
            if copy is not None:
                self._drop_copy(copy)
            copy = begun(source, self._new_number(), page, now_ms)
            if (before := anchor(page)) is not None:
                self._insert_checkpoint(copy, before, b"", 0, now_ms)
        self._insert_copied(copy, page.entries)
        self._insert_checkpoint(copy, reached.head, reached.signature, size, now_ms)
        self._rows.put(COPIES, copy)
        return copy

    def trim_copy(self, copy: Copy, batches: int) -> Copy | None:
        """Let go of so many batches at its beginning; None when nothing is left."""
        rows = self._rows.database.rows(
            "SELECT position, bytes, copied_at_ms FROM copied_checkpoints WHERE position BETWEEN ? AND ?"
            " ORDER BY position LIMIT ?",
            (copied(copy.number, copy.first), copied(copy.number, copy.last), batches + 1),
        )
        if len(rows) <= batches:
            self._drop_copy(copy)
            return None
        gone, following = rows[:batches], rows[batches]
        if not gone:
            return copy
        self._drop_copied(copied(copy.number, Seq(0)), gone[-1][0], keep_last_checkpoint=True)
        rest = trimmed(copy, seq_of(gone[-1][0]), sum(size for _, size, _ in gone), following[2])
        self._rows.put(COPIES, rest)
        return rest

    def _new_number(self) -> int:
        found = self._rows.all(COPIES, "ORDER BY number DESC LIMIT 1")
        return found[0].number + 1 if found else 1

    def _drop_copy(self, copy: Copy) -> None:
        self._rows.drop(COPIES, "WHERE source = ? AND epoch = ?", copy.source, copy.epoch)
        self._drop_copied(copied(copy.number, Seq(0)), copied(copy.number, Seq(SEQ_MAX)))

    def _drop_copied(self, first: int, last: int, *, keep_last_checkpoint: bool = False) -> None:
        for table, end in (("copied_entries", last), ("copied_checkpoints", last - keep_last_checkpoint)):
            self._rows.database.execute(
                f"DELETE FROM {table} WHERE position BETWEEN ? AND ?",  # noqa: S608 - own names
                (first, end),
            )

    def _insert_checkpoint(self, copy: Copy, at: Head, signature: bytes, size: int, now_ms: int) -> None:
        self._rows.database.execute(
            "INSERT INTO copied_checkpoints VALUES (?, ?, ?, ?, ?)",
            (copied(copy.number, at.seq), at.hash, signature, size, now_ms),
        )

    def _insert_copied(self, copy: Copy, entries: Sequence[Entry]) -> None:
        rows = [
            (copied(copy.number, entry.seq), entry.header, entry.body, named_blob(entry.body))
            for entry in entries
        ]
        for size, values in portions(rows):
            self._rows.database.execute(insert("copied_entries", _ENTRY_COLUMNS, size), values)
