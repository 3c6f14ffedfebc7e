"""Up to where turns of other nodes are forgotten: what stood there has ended, and is never taken again.

A node says in the state room from where on it keeps its outbox. What it has forgotten it sends no more, so
finished turns of it are forgotten here too. A node that goes back to an older backup remembers such events
again, as open ones, and says that it has forgotten less. So it is kept here how far rows were forgotten: else
an agent would have such an event twice.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.engine.limits import RETAIN_ENTRIES_MAX
from gateway.engine.tick import Tick
from outbox.chain import Head
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from outbox.records import LedgerFloor


def has_forgotten(tick: Tick, source: NodeId, epoch: Epoch, seq: int, *, read: Epoch | None = None) -> bool:
    """Whether a node's outbox begins after this place by its own word: what stood there has ended for it.

    ``read`` is the epoch in which that node is heard now.
    """
    floor = _told(tick, source, read)
    return floor is not None and _is_within(epoch, seq, floor.epoch, floor.seq)


def is_gone(tick: Tick, source: NodeId, epoch: Epoch, seq: int) -> bool:
    """Whether turns of what stood at this place were forgotten here."""
    kept = tick.store.ledger_floor(source)
    return kept is not None and _is_within(epoch, seq, kept.epoch, kept.seq)


def prune(tick: Tick) -> bool:
    """Forget finished turns that no attempt can come for any more. Whether more is to be done."""
    more = False
    for node in tick.view.nodes:
        cursor = tick.store.cursor(node)
        floor = _told(tick, node, cursor.epoch if cursor is not None else None)
        if floor is None:
            continue
        gone = tick.store.prune_ledger(node, floor.epoch, floor.seq, RETAIN_ENTRIES_MAX)
        if gone:
            _raise(tick, LedgerFloor(source=node, epoch=floor.epoch, seq=floor.seq))
        more |= gone == RETAIN_ENTRIES_MAX
    return more


def on_new_epoch(tick: Tick, source: NodeId, history: Sequence[tuple[Epoch, Seq]], began: Epoch) -> None:
    """A node goes on in a new epoch and knows each one before it only so far, the oldest first.

    What it says of places behind those is new, whatever stood there in the history that it does not know.
    """
    kept = tick.store.ledger_floor(source)
    if kept is not None and (lower := lowered(kept, history, began)) != kept:
        tick.store.put_ledger_floor(lower)


def lowered(kept: LedgerFloor, history: Sequence[tuple[Epoch, Seq]], began: Epoch) -> LedgerFloor:
    """The floor without those places that the epoch ``began`` leaves to another history."""
    if kept.epoch == began or epoch_ordinal(kept.epoch) > epoch_ordinal(began):
        return kept  # it was said before, and is said again
    for epoch, seq in reversed(history):
        if epoch == kept.epoch:
            return replace(kept, seq=min(kept.seq, seq))
        if epoch_ordinal(epoch) < epoch_ordinal(kept.epoch):
            return replace(kept, epoch=epoch, seq=seq)  # an epoch of a copy, or of what it has forgotten
    return kept


def _raise(tick: Tick, floor: LedgerFloor) -> None:
    """It does not go down with the word of a node that went back."""
    if not is_gone(tick, floor.source, floor.epoch, floor.seq):
        tick.store.put_ledger_floor(floor)


def _told(tick: Tick, source: NodeId, read: Epoch | None) -> Head | None:
    """Where a node's outbox begins by its own word; None where that word is older than what is read of it."""
    if source == tick.identity.node:
        floor = tick.store.floor()
        return floor.head if floor is not None else None
    node = tick.view.node(source)
    if node is None or _is_older(node.outbox_epoch, read):
        return None
    return node.floor


def _is_older(said: Epoch | None, read: Epoch | None) -> bool:
    return said is not None and read is not None and epoch_ordinal(said) < epoch_ordinal(read)


def _is_within(epoch: Epoch, seq: int, floor_epoch: Epoch, floor_seq: int) -> bool:
    return (epoch_ordinal(epoch), seq) <= (epoch_ordinal(floor_epoch), floor_seq)
