"""Epochs of the own outbox in memory."""

from outbox.chain import Head, genesis
from outbox.errors import StorageFailed
from outbox.ids import Epoch, NodeId, epoch_ordinal
from outbox.records import EpochRow, Identity
from outbox.twin.entries import History, TwinEntries


class TwinEpochs(TwinEntries):
    """``outbox.store.epochs`` in dictionaries."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._doubts: dict[NodeId, Epoch] = {}

    def shown(self) -> Head:
        """How far the current epoch may be shown."""
        held = self._shown.get(self._identity.epoch)
        head = self._head if held is None else self.head_at(held.epoch, held.shown)
        assert head is not None, "what is held back was appended after its place"
        return head

    def begin_epoch(self, epoch: Epoch) -> None:
        """End the current epoch. Raises StorageFailed unless the new one's ordinal is higher."""
        log, before = self._log(), self._identity
        if epoch_ordinal(epoch) <= epoch_ordinal(before.epoch):
            raise StorageFailed(f"epoch {epoch} does not come after {before.epoch}")
        row = EpochRow(epoch_ordinal(before.epoch), before.epoch, self.shown().seq)
        self._set(self._shown, before.epoch, row)
        log.append(lambda: setattr(self, "_identity", before))
        self._identity = Identity(before.mesh, before.node, epoch)
        self._head = genesis(before.mesh, before.node, epoch)
        self._set(self._histories, epoch, History(self._head, self._head))

    def hold(self) -> None:
        """What is appended from now on is not to be shown."""
        self._log()
        epoch = self._identity.epoch
        if epoch not in self._shown:
            self._set(self._shown, epoch, EpochRow(epoch_ordinal(epoch), epoch, self._head.seq))

    def release(self) -> None:
        """All of the current epoch may be shown."""
        self._drop(self._shown, self._identity.epoch)

    def doubt(self, source: NodeId, epoch: Epoch) -> None:
        """A node has to say what was dealt with."""
        self._set(self._doubts, source, epoch)

    def trust(self, source: NodeId) -> None:
        """It has said it."""
        self._drop(self._doubts, source)

    def doubts(self) -> dict[NodeId, Epoch]:
        """Nodes that still have to say what was dealt with, by name."""
        return dict(sorted(self._doubts.items()))
