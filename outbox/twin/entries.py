"""The outbox in memory."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

from outbox.batch import SealedBatch, check_place
from outbox.chain import Checkpoint, Entry, Head, Page, extend, genesis
from outbox.cursor import floor_in, page_end, stretch_after
from outbox.errors import StorageFailed
from outbox.ids import Epoch, EventId, Seq
from outbox.records import EpochRow, Identity
from outbox.twin.transaction import Transaction

_Place = tuple[Epoch, Seq]


@dataclass(slots=True)
class History:
    """What was written in one epoch."""

    genesis: Head
    base: Head
    """Before the first entry that is left."""
    entries: list[Entry] = field(default_factory=list)
    batches: list[tuple[Seq, int]] = field(default_factory=list)
    checkpoints: dict[Seq, Checkpoint] = field(default_factory=dict)

    def hash_at(self, seq: Seq) -> bytes:
        """The chain's hash after an entry, from the last checkpoint before it."""
        place = bisect_right(self.batches, seq, key=lambda batch: batch[0])
        start = self.checkpoints[self.batches[place - 1][0]].head if place else self.base
        gone = self.base.seq
        return extend(start, self.entries[start.seq - gone : seq - gone]).hash


class TwinEntries(Transaction):
    """``outbox.store.entries`` in a list an epoch."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._torn = False
        self._attempts: dict[tuple[EventId, int, Epoch], Seq] = {}
        self._about: dict[EventId, tuple[_Place, ...]] = {}
        self._first: dict[EventId, _Place] = {}
        self._head = self._committed = genesis(identity.mesh, identity.node, identity.epoch)
        self._histories: dict[Epoch, History] = {identity.epoch: History(self._head, self._head)}
        self._floor: dict[str, Checkpoint] = {}
        self._shown: dict[Epoch, EpochRow] = {}
        """Epochs that are not shown to their end, in order."""

    def commit(self) -> None:
        """Keep what was written. Raises StorageFailed when half a batch was."""
        if self._torn:
            raise StorageFailed("half a batch was appended; roll back")
        super().commit()
        self._committed = self._head

    def rollback(self) -> None:
        """Take back the open transaction."""
        super().rollback()
        self._torn = False
        self._head = self._committed

    def genesis(self) -> Head:
        """The head before the first entry of the oldest epoch."""
        return next(iter(self._histories.values())).genesis

    def floor(self) -> Checkpoint | None:
        """Up to where the outbox was forgotten; None when it is whole."""
        return self._floor.get("")

    def beginning(self) -> Head:
        """The place before the first entry that is left."""
        floor = self.floor()
        return self.genesis() if floor is None else floor.head

    def head(self) -> Head:
        """The last entry, or the genesis."""
        return self._head

    def append(self, batch: SealedBatch) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        log, epoch, checkpoint = self._log(), self._identity.epoch, batch.checkpoint
        check_place(batch, self._identity, self._head)
        history = self._histories[epoch]
        self._torn = True
        for draft in batch.drafts:
            entry, header = draft.entry, draft.header
            event, attempt, place = header.event_id, header.attempt, (epoch, entry.seq)
            if (event, attempt, epoch) in self._attempts:
                raise StorageFailed(f"attempt {attempt} of {event} is in the outbox already")
            self._set(self._attempts, (event, attempt, epoch), entry.seq)
            if event not in self._first:
                self._set(self._first, event, place)
            for about in {event, header.corr_id or event}:
                self._set(self._about, about, (*self._about.get(about, ()), place))
            log.append(history.entries.pop)
            history.entries.append(entry)
        log.append(history.batches.pop)
        history.batches.append((checkpoint.seq, batch.bytes))
        self._set(history.checkpoints, checkpoint.seq, checkpoint)
        self._head = checkpoint.head
        self._torn = False

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream."""
        stretch = stretch_after(
            after, ended=self.ended_epochs(), head=self._committed, floor=self._floor_head()
        )
        if stretch is None:
            return None
        epoch, start, last = stretch
        history = self._histories[epoch]
        first = bisect_right(history.batches, start, key=lambda batch: batch[0])
        batches = (batch for batch in history.batches[first:] if batch[0] <= last)
        end = page_end(start, batches, entries_max=entries_max, bytes_max=bytes_max)
        assert end is not None, "a stretch ends in a checkpoint"
        gone = history.base.seq
        entries = tuple(history.entries[start - gone : end - gone])
        return Page(epoch, entries, history.checkpoints[end], history.hash_at(start))

    def events_about(self, event: EventId) -> list[Entry]:
        """Own entries that are this event or refer to it, in order."""
        return [self._entry(epoch, seq) for epoch, seq in self._about.get(event, ())]

    def _entry(self, epoch: Epoch, seq: Seq) -> Entry:
        history = self._histories[epoch]
        return history.entries[seq - history.base.seq - 1]

    def ended_epochs(self) -> list[EpochRow]:
        """Those before the current one, oldest first."""
        return [row for epoch, row in self._shown.items() if epoch != self._identity.epoch]

    def head_at(self, epoch: Epoch, seq: Seq) -> Head | None:
        """The chain at a place of the own outbox; None where there is none."""
        history = self._histories.get(epoch)
        if history is None:
            return None
        place = seq - history.base.seq
        if not 0 <= place <= len(history.entries) or seq < floor_in(epoch, self._floor_head()):
            return None
        return Head(epoch, seq, history.hash_at(seq))

    def _floor_head(self) -> Head | None:
        floor = self.floor()
        return None if floor is None else floor.head

    def checkpoint_from(self, epoch: Epoch, seq: Seq) -> Checkpoint | None:
        """The first own checkpoint at a place or after it, in the same epoch."""
        history = self._histories.get(epoch)
        if history is None:
            return None
        start = max(seq, floor_in(epoch, self._floor_head()))
        place = bisect_left(history.batches, start, key=lambda batch: batch[0])
        return history.checkpoints[history.batches[place][0]] if place < len(history.batches) else None

    def position_of(self, event: EventId, attempt: int) -> tuple[Epoch, Seq] | None:
        """Where an attempt of an own event stands, of several the latest."""
        epochs = [epoch for epoch in self._histories if (event, attempt, epoch) in self._attempts]
        return (epochs[-1], self._attempts[event, attempt, epochs[-1]]) if epochs else None

    def entries_after(self, epoch: Epoch, seq: Seq, limit: int) -> list[Entry]:
        """Entries of an own epoch after a place, shown or not."""
        history = self._histories.get(epoch)
        start = 0 if history is None else max(0, seq - history.base.seq)
        return history.entries[start : start + limit] if history is not None else []

    def first_position(self, event: EventId) -> tuple[Epoch, Seq] | None:
        """Where an own event stands first."""
        return self._first.get(event)
