"""The epochs of the own outbox: which there were, and how much of them others may see.

A new epoch begins when this node has provably forgotten what it wrote in the one before. What it wrote there
is still readable up to where it was shown; what nobody has seen is not shown any more, since another history
may have those places. Epochs compare by their ordinal.
"""

from typing import Protocol

from outbox.chain import Checkpoint, Entry, Head
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.records import EpochRow


class EpochStore(Protocol):
    """The current epoch, those that ended, and whose answer is waited for since the last one began."""

    def begin_epoch(self, epoch: Epoch) -> None:
        """End the current epoch; the head is the genesis of the new one.

        Raises StorageFailed unless its ordinal is higher.
        """
        ...

    def genesis(self) -> Head:
        """The head before the first entry of the oldest epoch."""
        ...

    def ended_epochs(self) -> list[EpochRow]:
        """Those before the current one, oldest first."""
        ...

    def hold(self) -> None:
        """What is appended from now on is not to be shown; holding again changes nothing."""
        ...

    def release(self) -> None:
        """All of the current epoch may be shown."""
        ...

    def shown(self) -> Head:
        """How far the current epoch may be shown: its head, unless a tail is held back."""
        ...

    def head_at(self, epoch: Epoch, seq: Seq) -> Head | None:
        """The chain at a place of the own outbox; None where there is none."""
        ...

    def checkpoint_from(self, epoch: Epoch, seq: Seq) -> Checkpoint | None:
        """The first own checkpoint at a place or after it, in the same epoch."""
        ...

    def first_position(self, event: EventId) -> tuple[Epoch, Seq] | None:
        """Where an own event stands first."""
        ...

    def position_of(self, event: EventId, attempt: int) -> tuple[Epoch, Seq] | None:
        """Where an attempt of an own event stands; of one that stands in several epochs, the latest."""
        ...

    def entries_after(self, epoch: Epoch, seq: Seq, limit: int) -> list[Entry]:
        """Entries of an own epoch after a place, shown or not: as many as are left of it."""
        ...

    def doubt(self, source: NodeId, epoch: Epoch) -> None:
        """What comes from a node was perhaps dealt with before; it has to say so since this own epoch."""
        ...

    def trust(self, source: NodeId) -> None:
        """The node has said it; one that was not doubted is fine."""
        ...

    def doubts(self) -> dict[NodeId, Epoch]:
        """Nodes that have not said it yet, by name, with the own epoch since when."""
        ...
