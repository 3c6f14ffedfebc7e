"""A node has forgotten part of its outbox: what it had accepted there counts no more, and is sent again.

Such a node (it was put back to a backup, say) announces a new epoch, and how far it remembers each earlier
one. An ``accepted`` that it said behind such a place is lost: it holds neither the event nor its own ACK,
so the delivery here goes back to "not accepted". A sender may wait for the end of a hundred thousand events
at such a node. So they are gone through in parts, as an errand.
"""

from collections.abc import Iterable
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST, Along, advance, place_of
from gateway.engine.errands import Task
from gateway.engine.tick import Tick
from outbox.delivery import Input
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from outbox.records import Delivery, DeliveryState, Errand

Place = tuple[Epoch, Seq]
"""How far a node remembers an epoch of its own."""


def begin(tick: Tick, node: NodeId, remembered: Iterable[Place], began: Epoch) -> None:
    """A node goes on in the epoch ``began``. ``remembered`` says how far it knows each earlier one, the
    oldest first; one that is not named, since a copy of the node began it, is forgotten as a whole.
    """
    said = ",".join(f"{epoch}/{seq}" for epoch, seq in remembered)
    tick.errands.begin(tick, TakingBack(Errand(Task.LAPSE, f"{node}/{began}", said)))


class TakingBack:
    """Goes through all deliveries that were accepted, and takes back what that node has forgotten."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        node, _, began = row.subject.partition("/")
        self._remembered, _, after = row.detail.partition(" ")
        said = [place.partition("/") for place in self._remembered.split(",") if place]
        known = [(Epoch(epoch), Seq(int(seq))) for epoch, _, seq in said]
        self._node = NodeId(node)
        self._spans = list(pairwise((*known, (Epoch(began), Seq(0)))))
        """What was forgotten: behind each of these places, and before the epoch of the next one."""
        self._after = msgspec.json.decode(after, type=Along) if after else OLDEST

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = tick.store.deliveries_in(DeliveryState.ACCEPTED, self._after, most)
        for row in rows:
            if row.node == self._node and any(_is_lost(row, place, to[0]) for place, to in self._spans):
                unsaid = replace(row, accepted_epoch=None, accepted_seq=None)
                advance(tick, unsaid, Input.ACCEPTANCE_LOST)
        if rows:
            self._after = place_of(rows[-1])
            place = msgspec.json.encode(self._after).decode()
            self.row = replace(self.row, detail=f"{self._remembered} {place}")
        return len(rows)


def _is_lost(row: Delivery, place: Place, later: Epoch) -> bool:
    """Whether an ACK stands in what was forgotten. Another epoch of the place's ordinal stands behind it."""
    if row.accepted_epoch is None:
        return False
    epoch, seq = place
    within = epoch_ordinal(epoch) <= epoch_ordinal(row.accepted_epoch) < epoch_ordinal(later)
    return within and not (row.accepted_epoch == epoch and (row.accepted_seq or 0) <= seq)
