"""What may be forgotten: the floor of the outbox, who still reads, and rows whose time has passed.

The floor is a checkpoint of the own outbox. Everything up to it is gone from the journal, with the rows that
speak of nothing else; a reader that begins at 0 begins there.
"""

from typing import Protocol

from outbox.chain import Checkpoint, Head
from outbox.ids import Epoch, NodeId, Seq
from outbox.records import Batch, LedgerFloor, OutboxSize, Reader


class RetentionStore(Protocol):
    """The one door through which anything leaves the journal."""

    def floor(self) -> Checkpoint | None:
        """Up to where the outbox was forgotten; None when it is whole."""
        ...

    def beginning(self) -> Head:
        """The place before the first entry that is left."""
        ...

    def size(self) -> OutboxSize:
        """How much is left."""
        ...

    def oldest_batches(self, limit: int) -> list[Batch]:
        """The first batches above the floor, oldest first."""
        ...

    def first_owed(self, epoch: Epoch, seq: Seq) -> tuple[Epoch, Seq] | None:
        """The first entry above the floor and up to a place whose delivery has no end yet."""
        ...

    def move_floor(self, epoch: Epoch, seq: Seq) -> Checkpoint:
        """Forget everything up to a checkpoint, with the deliveries and idempotency keys of its events.

        Raises StorageFailed unless it is committed and above the floor; then only a rollback is possible.
        """
        ...

    def readers(self) -> list[Reader]:
        """Nodes that are known to read this outbox, by name."""
        ...

    def put_reader(self, row: Reader) -> None:
        """Insert or replace it."""
        ...

    def drop_reader(self, node: NodeId) -> None:
        """It reads no more; an absent one is fine."""
        ...

    def prune_ledger(self, source: NodeId, epoch: Epoch, seq: Seq, limit: int) -> int:
        """Forget finished turns of another outbox up to a place of it, oldest first; returns how many."""
        ...

    def ledger_floor(self, source: NodeId) -> LedgerFloor | None:
        """Up to where finished turns of another outbox were forgotten; None while all are kept."""
        ...

    def put_ledger_floor(self, row: LedgerFloor) -> None:
        """Insert or replace it."""
        ...

    def prune_incidents(
        self, closed_before_ms: int, closed_max: int, quarantined_max: int, quarantined_bytes_max: int
    ) -> None:
        """Forget incidents that were closed before a time, and all but the newest quarantined entries.

        Of these so many stay as are within both bounds; bytes are those of headers and bodies.

        Of the closed ones ``closed_max`` stay, and what was closed in the same moment as the oldest of them.
        """
        ...
