"""What may be forgotten, in SQL."""

from outbox.batch import SealedBatch
from outbox.chain import Checkpoint
from outbox.delivery import settled
from outbox.errors import StorageFailed
from outbox.ids import Epoch, NodeId, Seq, event_id_from_bytes
from outbox.kinds import Kind
from outbox.records import Batch, LedgerFloor, OutboxSize, Reader
from outbox.schema import ordinal_of, position, seq_of
from outbox.sql.epochs import EpochReads, EpochWrites
from outbox.sql.ledger import LedgerWrites
from outbox.tables import DELIVERIES, INCIDENTS, LEDGER_FLOORS, QUARANTINED, READERS, RECEIVED, REMEMBERED

_FORGOTTEN = "WHERE event_id IN (SELECT event_id FROM outbox WHERE position > ? AND position <= ?)"

_LATER = "SELECT 1 FROM outbox o WHERE o.event_id = {0}.event_id AND o.position > ?"
_FORGOTTEN_WHOLLY = f"{_FORGOTTEN} AND NOT EXISTS ({_LATER})"


_TOO_HEAVY = (
    "WHERE arrival <= (SELECT MAX(arrival) FROM (SELECT arrival, SUM(LENGTH(header) + LENGTH(body))"
    " OVER (ORDER BY arrival DESC) AS weight FROM quarantined) WHERE weight > ?)"
)
"""What is in quarantine before the newest that together are light enough."""


class RetentionReads(EpochReads):
    """The questions of ``outbox.store.retention``."""

    def size(self) -> OutboxSize:
        """How much is left."""
        above = self._key(self.floor())
        entries = sum(
            max(0, self._last(epoch) - seq_of(max(above, position(epoch, Seq(0)))))
            for epoch in (*(row.epoch for row in self.ended_epochs()), self._identity.epoch)
            if position(epoch, self._last(epoch)) > above
        )
        sql = "SELECT coalesce(sum(bytes), 0) FROM checkpoints WHERE position > ?"
        return OutboxSize(entries, int(self._rows.database.rows(sql, (above,))[0][0]))

    def oldest_batches(self, limit: int) -> list[Batch]:
        """The first batches above the floor, oldest first."""
        last = self._key(self.floor())
        rows = self._rows.database.rows(
            "SELECT position, bytes, event_id FROM checkpoints JOIN outbox USING (position)"
            " WHERE position > ? ORDER BY position LIMIT ?",
            (last, limit),
        )
        found: list[Batch] = []
        for key, size, event in rows:
            epoch = self._epoch_named(ordinal_of(key))
            first = max(last, position(epoch, Seq(0)))
            found.append(
                Batch(
                    epoch=epoch,
                    seq=seq_of(key),
                    entries=key - first,
                    bytes=size,
                    event_id=event_id_from_bytes(event),
                )
            )
            last = key
        return found

    def first_owed(self, epoch: Epoch, seq: Seq) -> tuple[Epoch, Seq] | None:
        """The first entry above the floor and up to a place whose delivery has no end yet."""
        rows = self._rows.all(DELIVERIES, _FORGOTTEN, self._key(self.floor()), position(epoch, seq))
        owed = [row.event_id for row in rows if not settled(Kind(row.kind), row.state)]
        places = [place for event in owed if (place := self.first_position(event)) is not None]
        return min(places, default=None)

    def readers(self) -> list[Reader]:
        """Nodes that are known to read this outbox, by name."""
        return self._rows.all(READERS, "ORDER BY node")

    def ledger_floor(self, source: NodeId) -> LedgerFloor | None:
        """Up to where finished turns of another outbox were forgotten; None while all are kept."""
        return self._rows.find(LEDGER_FLOORS, source)

    def _key(self, place: Checkpoint | None) -> int:
        return 0 if place is None else position(place.epoch, place.seq)


class RetentionWrites(EpochWrites, LedgerWrites, RetentionReads):
    """What the writer adds. It counts as it writes: a sum over all checkpoints takes too long for a tick."""

    _size: OutboxSize | None

    def size(self) -> OutboxSize:
        """How much is left."""
        if self._size is None:
            self._size = super().size()
        return self._size

    def append(self, batch: SealedBatch) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        super().append(batch)
        if self._size is not None:
            entries = self._size.entries + len(batch.drafts)
            self._size = OutboxSize(entries, self._size.bytes + batch.bytes)

    def move_floor(self, epoch: Epoch, seq: Seq) -> Checkpoint:
        """Forget everything up to a checkpoint, with the deliveries and idempotency keys of its events."""
        self._rows.need_transaction()
        database, below, above = self._rows.database, self._key(self.floor()), position(epoch, seq)
        if above > position(self._committed.epoch, self._committed.seq):
            raise StorageFailed(f"{epoch}/{seq} is not committed")
        database.execute(
            "INSERT INTO floors VALUES (?, (SELECT hash FROM checkpoints WHERE position = ?),"
            " (SELECT signature FROM checkpoints WHERE position = ?))",
            (above, above, above),
        )
        self._rows.drop(DELIVERIES, _FORGOTTEN_WHOLLY.format("deliveries"), below, above, above)
        self._rows.drop(REMEMBERED, _FORGOTTEN_WHOLLY.format("remembered"), below, above, above)
        database.execute("DELETE FROM outbox WHERE position <= ?", (above,))
        database.execute("DELETE FROM checkpoints WHERE position < ?", (above,))
        database.execute("DELETE FROM floors WHERE position < ?", (above,))
        self._size = None
        floor = self.floor()
        assert floor is not None, "it was just written"
        return floor

    def put_reader(self, row: Reader) -> None:
        """Insert or replace it."""
        self._rows.put(READERS, row)

    def drop_reader(self, node: NodeId) -> None:
        """It reads no more; an absent one is fine."""
        self._rows.drop(READERS, "WHERE node = ?", node)

    def prune_ledger(self, source: NodeId, epoch: Epoch, seq: Seq, limit: int) -> int:
        """Forget finished turns of another outbox up to a place of it, oldest first."""
        clause = (
            "WHERE arrival IN (SELECT arrival FROM received WHERE state = 'done' AND source = ?"
            " AND (epoch, seq) <= (?, ?) ORDER BY epoch, seq LIMIT ?)"
        )
        self._forget_turns()
        return self._rows.drop(RECEIVED, clause, source, epoch, seq, limit)

    def put_ledger_floor(self, row: LedgerFloor) -> None:
        """Insert or replace it."""
        self._rows.put(LEDGER_FLOORS, row)

    def prune_incidents(
        self, closed_before_ms: int, closed_max: int, quarantined_max: int, quarantined_bytes_max: int
    ) -> None:
        """Forget what was closed before a time, or before so many others, and old quarantined entries."""
        nth = "SELECT closed_at_ms FROM incidents WHERE closed_at_ms > 0 ORDER BY closed_at_ms DESC LIMIT 1"
        self._rows.drop(
            INCIDENTS,
            f"WHERE closed_at_ms < MAX(?, IFNULL(({nth} OFFSET ?), ?))",
            closed_before_ms,
            closed_max - 1,
            closed_before_ms,
        )
        newest = "(SELECT arrival FROM quarantined ORDER BY arrival DESC LIMIT ?)"
        self._rows.drop(QUARANTINED, f"WHERE arrival NOT IN {newest}", quarantined_max)
        self._rows.drop(QUARANTINED, _TOO_HEAVY, quarantined_bytes_max)
