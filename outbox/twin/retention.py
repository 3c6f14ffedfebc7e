"""What may be forgotten, in memory."""

from functools import partial

from outbox.chain import Checkpoint, Entry, Head, extend
from outbox.delivery import settled
from outbox.envelope import decode_header
from outbox.errors import StorageFailed
from outbox.ids import Epoch, EventId, NodeId, Seq, epoch_ordinal
from outbox.kinds import Kind
from outbox.records import Batch, Identity, LedgerFloor, OutboxSize, Reader, TurnState
from outbox.twin.agents import TwinAgents
from outbox.twin.deliveries import TwinDeliveries
from outbox.twin.entries import History
from outbox.twin.epochs import TwinEpochs
from outbox.twin.incidents import TwinIncidents
from outbox.twin.ledger import TwinLedger, ledger_key


class TwinRetention(TwinEpochs, TwinDeliveries, TwinLedger, TwinIncidents, TwinAgents):
    """``outbox.store.retention`` over the dictionaries of the others."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._readers: dict[NodeId, Reader] = {}
        self._ledger_floors: dict[NodeId, LedgerFloor] = {}

    def size(self) -> OutboxSize:
        """How much is left."""
        kept = self._histories.values()
        size = sum(size for history in kept for seq, size in history.batches if seq > history.base.seq)
        return OutboxSize(sum(len(history.entries) for history in kept), size)

    def oldest_batches(self, limit: int) -> list[Batch]:
        """The first batches above the floor, oldest first."""
        found: list[Batch] = []
        for epoch, history in self._histories.items():
            last = history.base.seq
            for seq, size in history.batches[: limit + 1]:
                if seq <= last or len(found) == limit:
                    continue
                event = decode_header(self._entry(epoch, seq).header).event_id
                found.append(Batch(epoch=epoch, seq=seq, entries=seq - last, bytes=size, event_id=event))
                last = seq
        return found

    def first_owed(self, epoch: Epoch, seq: Seq) -> tuple[Epoch, Seq] | None:
        """The first entry above the floor and up to a place whose delivery has no end yet."""
        owed = [row.event_id for row in self._deliveries.values() if not settled(Kind(row.kind), row.state)]
        places = [place for event in owed if (place := self.first_position(event)) is not None]
        return min((place for place in places if place <= (epoch, seq)), default=None)

    def move_floor(self, epoch: Epoch, seq: Seq) -> Checkpoint:
        """Forget everything up to a checkpoint, with the deliveries and idempotency keys of its events."""
        history, before = self._histories.get(epoch), self.floor()
        floor = history.checkpoints.get(seq) if history is not None else None
        if (epoch, seq) > (self._committed.epoch, self._committed.seq):
            raise StorageFailed(f"{epoch}/{seq} is not committed")
        if floor is None or (before is not None and (epoch, seq) <= (before.epoch, before.seq)):
            raise StorageFailed(f"{epoch}/{seq} is no checkpoint above the floor")
        for kept in list(self._histories.values()):
            if epoch_ordinal(kept.genesis.epoch) < epoch_ordinal(epoch):
                self._cut(kept, extend(kept.base, kept.entries))
            elif kept is history:
                self._cut(kept, floor.head)
        self._set(self._floor, "", floor)
        return floor

    def readers(self) -> list[Reader]:
        """Nodes that are known to read this outbox, by name."""
        return [row for _, row in sorted(self._readers.items())]

    def put_reader(self, row: Reader) -> None:
        """Insert or replace it."""
        self._set(self._readers, row.node, row)

    def drop_reader(self, node: NodeId) -> None:
        """It reads no more; an absent one is fine."""
        self._drop(self._readers, node)

    def prune_ledger(self, source: NodeId, epoch: Epoch, seq: Seq, limit: int) -> int:
        """Forget finished turns of another outbox up to a place of it, oldest first."""
        rows = [row for row in self._received.values() if row.source == source]
        done = [row for row in rows if row.state is TurnState.DONE and (row.epoch, row.seq) <= (epoch, seq)]
        done.sort(key=lambda row: (row.epoch, row.seq, self._arrivals[ledger_key(row)]))
        for row in done[:limit]:
            key = ledger_key(row)
            others = tuple(other for other in self._keys[row.event_id] if other != key)
            self._drop(self._received, key)
            self._drop(self._arrivals, key)
            self._set_if(bool(others), self._keys, row.event_id, others)
        return len(done[:limit])

    def ledger_floor(self, source: NodeId) -> LedgerFloor | None:
        """Up to where finished turns of another outbox were forgotten; None while all are kept."""
        return self._ledger_floors.get(source)

    def put_ledger_floor(self, row: LedgerFloor) -> None:
        """Insert or replace it."""
        self._set(self._ledger_floors, row.source, row)

    def prune_incidents(
        self, closed_before_ms: int, closed_max: int, quarantined_max: int, quarantined_bytes_max: int
    ) -> None:
        """Forget what was closed before a time, or before so many others, and old quarantined entries."""
        self._log()
        closed = [row.closed_at_ms for row in self._incidents.values() if row.closed_at_ms is not None]
        before_ms = max([closed_before_ms, *sorted(closed, reverse=True)[closed_max - 1 : closed_max]])
        for key, incident in list(self._incidents.items()):
            if incident.closed_at_ms is not None and incident.closed_at_ms < before_ms:
                self._drop(self._incidents, key)
        kept, weight = 0, 0
        for row in reversed(self.quarantined()):
            weight += len(row.header) + len(row.body)
            if kept < quarantined_max and weight <= quarantined_bytes_max:
                kept += 1
                continue
            place = (row.source, row.epoch, row.seq)
            self._drop(self._quarantined, place)
            self._drop(self._caught, place)

    def _cut(self, history: History, upto: Head) -> None:
        log, count = self._log(), upto.seq - history.base.seq
        gone, base, batches = history.entries[:count], history.base, history.batches
        for entry in gone:
            self._forget(history.genesis.epoch, entry)
        log.append(partial(_restore, history, gone, base, batches))
        del history.entries[:count]
        history.base = upto
        history.batches = [batch for batch in batches if batch[0] >= upto.seq]

    def _forget(self, epoch: Epoch, entry: Entry) -> None:
        header, place = decode_header(entry.header), (epoch, entry.seq)
        event = header.event_id
        self._drop(self._attempts, (event, header.attempt, epoch))
        for about in {event, header.corr_id or event}:
            left = tuple(other for other in self._about[about] if other != place)
            self._set_if(bool(left), self._about, about, left)
        own = [other for other in self._about.get(event, ()) if self._is(event, other)]
        self._set_if(bool(own), self._first, event, own[0] if own else place)
        if not own:
            self._forget_rows(event)

    def _is(self, event: EventId, place: tuple[Epoch, Seq]) -> bool:
        return decode_header(self._entry(*place).header).event_id == event

    def _forget_rows(self, event: EventId) -> None:
        """Nothing of an event is in the outbox any more: nothing is known of it."""
        for node in self._nodes.get(event, ()):
            for rows in (self._deliveries, self._unaccepted):
                self._drop(rows, (event, node))
            self._drop(self._timed, (event, node))
        self._drop(self._nodes, event)
        for name in [name for name, row in self._remembered.items() if row.event_id == event]:
            self._drop(self._remembered, name)


def _restore(history: History, gone: list[Entry], base: Head, batches: list[tuple[Seq, int]]) -> None:
    history.entries[:0] = gone
    history.base, history.batches = base, batches
