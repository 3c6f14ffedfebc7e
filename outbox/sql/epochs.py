"""Epochs of the own outbox in SQL."""

from outbox.chain import Checkpoint, Entry, Head, genesis
from outbox.errors import StorageFailed
from outbox.ids import Epoch, EventId, NodeId, Seq, epoch_ordinal, event_id_bytes
from outbox.limits import SEQ_MAX
from outbox.records import Doubt, EpochRow, Identity
from outbox.schema import ordinal_of, position, seq_of
from outbox.sql.entries import EntryReads, EntryWrites
from outbox.tables import DOUBTS, EPOCHS


class EpochReads(EntryReads):
    """The questions of ``outbox.store.epochs``."""

    def shown(self) -> Head:
        """How far the current epoch may be shown."""
        held = self._rows.find(EPOCHS, epoch_ordinal(self._identity.epoch))
        head = self.head() if held is None else self.head_at(held.epoch, held.shown)
        assert head is not None, "what is held back was appended after its place"
        return head

    def first_position(self, event: EventId) -> tuple[Epoch, Seq] | None:
        """Where an own event stands first."""
        sql = "SELECT min(position) FROM outbox WHERE event_id = ?"
        key = self._rows.database.rows(sql, (event_id_bytes(event),))[0][0]
        return None if key is None else (self._epoch_named(ordinal_of(key)), seq_of(key))

    def position_of(self, event: EventId, attempt: int) -> tuple[Epoch, Seq] | None:
        """Where an attempt of an own event stands, of several the latest."""
        sql = "SELECT max(position) FROM outbox WHERE event_id = ? AND attempt = ?"
        key = self._rows.database.rows(sql, (event_id_bytes(event), attempt))[0][0]
        return None if key is None else (self._epoch_named(ordinal_of(key)), seq_of(key))

    def entries_after(self, epoch: Epoch, seq: Seq, limit: int) -> list[Entry]:
        """Entries of an own epoch after a place, shown or not."""
        rows = self._rows.database.rows(
            "SELECT position, CAST(header AS BLOB), CAST(body AS BLOB) FROM outbox"
            " WHERE position > ? AND position <= ? ORDER BY position LIMIT ?",
            (position(epoch, seq), position(epoch, Seq(SEQ_MAX)), limit),
        )
        return [Entry(seq_of(key), header, body) for key, header, body in rows]

    def checkpoint_from(self, epoch: Epoch, seq: Seq) -> Checkpoint | None:
        """The first own checkpoint at a place or after it, in the same epoch."""
        if not self._is_own(epoch):
            return None
        found = self._rows.database.rows(
            "SELECT min(position) FROM checkpoints WHERE position BETWEEN ? AND ?",
            (position(epoch, seq), position(epoch, self._last(epoch))),
        )[0][0]
        return None if found is None else self._checkpoint(epoch, seq_of(found))

    def doubts(self) -> dict[NodeId, Epoch]:
        """Nodes that still have to say what was dealt with, by name."""
        return {row.source: row.epoch for row in self._rows.all(DOUBTS, "ORDER BY source")}


class EpochWrites(EntryWrites, EpochReads):
    """What the writer adds."""

    def begin_epoch(self, epoch: Epoch) -> None:
        """End the current epoch. Raises StorageFailed unless the new one's ordinal is higher."""
        self._rows.need_transaction()
        before = self._identity.epoch
        if epoch_ordinal(epoch) <= epoch_ordinal(before):
            raise StorageFailed(f"epoch {epoch} does not come after {before}")
        self._rows.put(EPOCHS, EpochRow(epoch_ordinal(before), before, self.shown().seq))
        self._rows.database.execute("UPDATE identity SET epoch = ?", (epoch,))
        self._identity = Identity(self._identity.mesh, self._identity.node, epoch)
        self._head = genesis(self._identity.mesh, self._identity.node, epoch)

    def hold(self) -> None:
        """What is appended from now on is not to be shown."""
        ordinal = epoch_ordinal(self._identity.epoch)
        if self._rows.find(EPOCHS, ordinal) is None:
            self._rows.put(EPOCHS, EpochRow(ordinal, self._identity.epoch, self._head.seq))

    def release(self) -> None:
        """All of the current epoch may be shown."""
        self._rows.drop(EPOCHS, "WHERE ordinal = ?", epoch_ordinal(self._identity.epoch))

    def doubt(self, source: NodeId, epoch: Epoch) -> None:
        """A node has to say what was dealt with."""
        self._rows.put(DOUBTS, Doubt(source, epoch))

    def trust(self, source: NodeId) -> None:
        """It has said it."""
        self._rows.drop(DOUBTS, "WHERE source = ?", source)
