"""The outbox in memory."""

from bisect import bisect_right
from collections.abc import Sequence

from outbox.batch import batch_bytes, check_batch
from outbox.chain import Checkpoint, Entry, Head, Page, genesis
from outbox.cursor import check_cursor, page_end
from outbox.errors import StorageFailed
from outbox.ids import EventId, Seq
from outbox.records import Identity
from outbox.twin.transaction import Transaction


class TwinEntries(Transaction):
    """``outbox.store.entries`` in a list."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._torn = False
        self._entries: list[Entry] = []
        self._batches: list[tuple[Seq, int]] = []
        self._checkpoints: dict[Seq, Checkpoint] = {}
        self._attempts: dict[tuple[EventId, int], Seq] = {}
        self._about: dict[EventId, tuple[Seq, ...]] = {}
        self._head = self._committed = genesis(identity.mesh, identity.node, identity.epoch)

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

    def head(self) -> Head:
        """The last entry, or the genesis."""
        return self._head

    def append(self, entries: Sequence[Entry], checkpoint: Checkpoint) -> None:
        """Add a batch. Raises StorageFailed when it does not follow on or repeats an attempt."""
        log = self._log()
        batch = check_batch(self._identity, self._head, entries, checkpoint)
        self._torn = True
        for item in batch:
            if (item.event, item.attempt) in self._attempts:
                raise StorageFailed(f"attempt {item.attempt} of {item.event} is in the outbox already")
            self._set(self._attempts, (item.event, item.attempt), item.entry.seq)
            for about in {item.event, item.corr or item.event}:
                self._set(self._about, about, (*self._about.get(about, ()), item.entry.seq))
            log.append(self._entries.pop)
            self._entries.append(item.entry)
        log.append(self._batches.pop)
        self._batches.append((checkpoint.seq, batch_bytes(entries)))
        self._set(self._checkpoints, checkpoint.seq, checkpoint)
        self._head = checkpoint.head
        self._torn = False

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        """The committed entries after a cursor, up to a checkpoint; None at the end of the stream."""
        start = check_cursor(after, head=self._committed)
        first = bisect_right(self._batches, start, key=lambda batch: batch[0])
        batches = (batch for batch in self._batches[first:] if batch[0] <= self._committed.seq)
        end = page_end(start, batches, entries_max=entries_max, bytes_max=bytes_max)
        if end is None:
            return None
        return Page(self._identity.epoch, tuple(self._entries[start:end]), self._checkpoints[end])

    def events_about(self, event: EventId) -> list[Entry]:
        """Own entries that are this event or refer to it, in order."""
        return [self._entries[seq - 1] for seq in self._about.get(event, ())]
