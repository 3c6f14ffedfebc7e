"""The outbox in SQL.

Contents are read with CAST: a column that was tampered with may hold text, and as bytes it goes on to the
hash, which tells.
"""

from collections.abc import Sequence

from outbox.batch import Draft, SealedBatch, check_place
from outbox.blobref import named_blob
from outbox.chain import Checkpoint, Entry, Head, Page, Verify, check_signature, extend, genesis
from outbox.cursor import floor_in, page_end, stretch_after
from outbox.errors import BrokenChain, StorageFailed
from outbox.ids import Epoch, EventId, Seq, epoch_ordinal, event_id_bytes
from outbox.limits import SEQ_MAX
from outbox.records import EpochRow, Identity
from outbox.schema import ordinal_of, position, seq_of
from outbox.sql.rows import Asking, Writing
from outbox.tables import EPOCHS, OUTBOX, Values, insert, portions
from outbox.verification import Progress, verify_outbox

_LAST_ENTRY = "SELECT max(position) FROM outbox WHERE position BETWEEN ? AND ?"
_LAST_CHECKPOINT = "SELECT max(position) FROM checkpoints WHERE position BETWEEN ? AND ?"


class EntryReads(Asking):
    """The questions of ``outbox.store.entries``."""

    _identity: Identity

    def identity(self) -> Identity:
        """Mesh, node and current epoch."""
        return self._identity

    def genesis(self) -> Head:
        """The head of the outbox before its first entry, of the oldest epoch."""
        ended = self.ended_epochs()
        return self._genesis(ended[0].epoch if ended else self._identity.epoch)

    def floor(self) -> Checkpoint | None:
        """Up to where the outbox was forgotten; None when it is whole."""
        found = self._rows.database.rows(
            "SELECT position, CAST(hash AS BLOB), CAST(signature AS BLOB) FROM floors"
            " ORDER BY position DESC LIMIT 1"
        )
        if not found:
            return None
        (key, digest, signature), who = found[0], self._identity
        return Checkpoint(
            who.mesh, who.node, self._epoch_named(ordinal_of(key)), seq_of(key), digest, signature
        )

    def beginning(self) -> Head:
        """The place before the first entry that is left."""
        floor = self.floor()
        return self.genesis() if floor is None else floor.head

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis."""
        return self._checkpointed(0)

    def ended_epochs(self) -> list[EpochRow]:
        """Those before the current one, oldest first."""
        current = epoch_ordinal(self._identity.epoch)
        return self._rows.all(EPOCHS, "WHERE ordinal < ? ORDER BY ordinal", current)

    def head_at(self, epoch: Epoch, seq: Seq) -> Head | None:
        """The chain at a place of the own outbox; None where there is none."""
        if not self._is_own(epoch) or not floor_in(epoch, self._floor()) <= seq <= self._last(epoch):
            return None
        found = self._rows.database.rows(
            "SELECT position, CAST(hash AS BLOB) FROM checkpoints WHERE position BETWEEN ? AND ?"
            " ORDER BY position DESC LIMIT 1",
            (position(epoch, Seq(0)), position(epoch, seq)),
        )
        start = Head(epoch, seq_of(found[0][0]), found[0][1]) if found else self._genesis(epoch)
        return extend(start, self._entries(epoch, start.seq, seq))

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """Entries after a cursor, up to a checkpoint; None at the end. Raises as ``EntryStore.read``."""
        return self._page(after, self.head(), entries_max, bytes_max)

    def events_about(self, event: EventId) -> list[Entry]:
        """Own entries that are this event or refer to it, in order."""
        raw = event_id_bytes(event)
        rows = self._rows.database.rows(
            "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM outbox"
            " WHERE event_id = ? OR corr_id = ? ORDER BY position",
            (raw, raw),
        )
        return [Entry(seq_of(key), header, body) for key, header, body in rows]

    def verify(self, verify: Verify, start: Head | None = None, progress: Progress | None = None) -> Head:
        """Verify all of the outbox, or what follows ``start``. Raises BrokenChain, BadCheckpoint."""
        self._check_tail()
        floor = self.floor()
        if floor is not None:
            check_signature(floor, self._identity.mesh, self._identity.node, verify)
        return verify_outbox(self, verify, start or self.beginning(), progress)

    def verify_tail(self, verify: Verify) -> Head:
        """Verify the last batch, from the last checkpoint but one: what a start must know to append."""
        return self.verify(verify, self._checkpointed(1))

    def _page(self, after: Head, head: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The floor may move while another connection reads: then what was found is not all of it."""
        while True:
            floor = self._floor()
            page = self._page_above(floor, after, head, entries_max, bytes_max)
            if self._floor() == floor:
                return page

    def _page_above(
        self, floor: Head | None, after: Head, head: Head, entries_max: int, bytes_max: int
    ) -> Page | None:
        ended = [] if after.epoch == head.epoch else self.ended_epochs()
        stretch = stretch_after(after, ended=ended, head=head, floor=floor)
        if stretch is None:
            return None
        epoch, start, last = stretch
        batches = self._rows.database.rows(
            "SELECT position, bytes FROM checkpoints WHERE position > ? AND position <= ?"
            " ORDER BY position LIMIT ?",
            (position(epoch, start), position(epoch, last), max(entries_max, 1) + 1),
        )
        sizes = ((seq_of(key), size) for key, size in batches)
        end = page_end(start, sizes, entries_max=entries_max, bytes_max=bytes_max)
        if end is None:
            raise StorageFailed(f"the outbox has no checkpoint after {start}")
        before = self.head_at(epoch, start)
        digest = b"" if before is None else before.hash  # None: the floor has moved meanwhile
        return Page(epoch, self._entries(epoch, start, end), self._checkpoint(epoch, end), digest)

    def _check_tail(self) -> None:
        head = self.head()
        last, floor = self._last_in(_LAST_ENTRY, head.epoch), self.floor()
        if floor is not None and floor.head == head:
            return  # nothing is left, and nothing should be
        if last != head.seq:
            raise BrokenChain(f"the last entry is {last}, the last checkpoint is of {head.seq}")

    def _checkpointed(self, back: int) -> Head:
        epoch = self._identity.epoch
        found = self._rows.database.rows(
            "SELECT position, CAST(hash AS BLOB) FROM checkpoints WHERE position >= ?"
            " ORDER BY position DESC LIMIT 1 OFFSET ?",
            (position(epoch, Seq(0)), back),
        )
        if found:
            return Head(epoch, seq_of(found[0][0]), found[0][1])
        floor = self._floor()
        return floor if floor is not None and floor.epoch == epoch else self._genesis(epoch)

    def _floor(self) -> Head | None:
        floor = self.floor()
        return None if floor is None else floor.head

    def _epoch_named(self, ordinal: int) -> Epoch:
        row = self._rows.find(EPOCHS, ordinal)
        return self._identity.epoch if row is None else row.epoch

    def _genesis(self, epoch: Epoch) -> Head:
        return genesis(self._identity.mesh, self._identity.node, epoch)

    def _is_own(self, epoch: Epoch) -> bool:
        return epoch == self._identity.epoch or any(row.epoch == epoch for row in self.ended_epochs())

    def _last(self, epoch: Epoch) -> Seq:
        """The last place of an own epoch, shown or not; the floor's, where all of it was let go."""
        return self.head().seq if epoch == self._identity.epoch else self._last_in(_LAST_CHECKPOINT, epoch)

    def _last_in(self, last: str, epoch: Epoch) -> Seq:
        places = position(epoch, Seq(0)), position(epoch, Seq(SEQ_MAX))
        found = self._rows.database.rows(last, places)[0][0]
        return Seq(0) if found is None else seq_of(found)

    def _entries(self, epoch: Epoch, start: Seq, end: Seq) -> tuple[Entry, ...]:
        rows = self._rows.database.rows(
            "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM outbox"
            " WHERE position > ? AND position <= ? ORDER BY position",
            (position(epoch, start), position(epoch, end)),
        )
        return tuple(Entry(seq_of(key), header, body) for key, header, body in rows)

    def _checkpoint(self, epoch: Epoch, seq: Seq) -> Checkpoint:
        who = self._identity
        digest, signature = self._rows.database.rows(
            "SELECT CAST(hash AS BLOB), CAST(signature AS BLOB) FROM checkpoints WHERE position = ?",
            (position(epoch, seq),),
        )[0]
        return Checkpoint(who.mesh, who.node, epoch, seq, digest, signature)


class EntryWrites(Writing, EntryReads):
    """What the writer adds. What ``read`` returns is committed: the open transaction is not in it."""

    _head: Head
    _committed: Head
    _torn: bool

    def head(self) -> Head:
        """The last entry of the current epoch, or its genesis; of the open transaction too."""
        return self._head

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream."""
        return self._page(after, self._committed, entries_max, bytes_max)

    def append(self, batch: SealedBatch) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        self._rows.need_transaction()
        check_place(batch, self._identity, self._head)
        checkpoint = batch.checkpoint
        self._torn = True
        self._insert(batch.drafts)
        self._rows.database.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)",
            (
                position(checkpoint.epoch, checkpoint.seq),
                checkpoint.hash,
                checkpoint.signature,
                batch.bytes,
            ),
        )
        self._head = checkpoint.head
        self._torn = False

    def _insert(self, drafts: Sequence[Draft]) -> None:
        base = position(self._head.epoch, Seq(0))
        for size, values in portions([_outbox_row(base, draft) for draft in drafts]):
            self._rows.database.execute(insert("outbox", OUTBOX, size), values)


def _outbox_row(base: int, draft: Draft) -> Values:
    entry, header = draft.entry, draft.header
    return (
        base | entry.seq,
        event_id_bytes(header.event_id),
        header.attempt,
        header.kind,
        None if header.corr_id is None else event_id_bytes(header.corr_id),
        entry.header,
        entry.body,
        named_blob(entry.body),
    )
