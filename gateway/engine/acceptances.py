"""A node has forgotten part of its outbox: what it had accepted there counts no more, and is sent again.

Its word may reach a sender that waits for a hundred thousand ends. So a tick looks at a bounded part of them,
and the store keeps what is left to do: a gateway that dies in between goes on from the first one.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from gateway.engine.deliveries import advance
from gateway.engine.limits import TAKEN_BACK_MAX
from gateway.engine.tick import Tick
from outbox.delivery import Input
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal
from outbox.records import Delivery, DeliveryState, Lapse

Place = tuple[Epoch, Seq]
"""How far a node remembers an epoch of its own."""


def begin(tick: Tick, node: NodeId, remembered: Iterable[Place], began: Epoch) -> None:
    """A node goes on in a new epoch and knows each one before it only so far, the oldest first. A copy of it
    may have begun epochs that it does not know.
    """
    lapse = Lapse(node, began, ",".join(f"{epoch}/{seq}" for epoch, seq in remembered))
    tick.store.put_lapse(lapse)
    tick.lapses.begin(lapse)


def take_back_some(tick: Tick) -> None:
    """Take back as many acceptances as one tick may; what is left follows in the next."""
    left = TAKEN_BACK_MAX
    while left > 0 and (found := tick.lapses.next()) is not None:
        lapse, after = found
        rows = tick.store.deliveries_in(DeliveryState.ACCEPTED, after, left)
        _take_back(tick, lapse, rows)
        if len(rows) == left:
            tick.lapses.went_on(lapse, rows[-1])
        else:
            tick.lapses.end(lapse)
            tick.store.drop_lapse(lapse)
        left -= len(rows)


def _take_back(tick: Tick, lapse: Lapse, rows: list[Delivery]) -> None:
    spans = list(_spans(lapse))
    for row in rows:
        if row.node == lapse.node and any(_is_lost(row, place, later) for place, later in spans):
            unsaid = replace(row, accepted_epoch=None, accepted_seq=None)
            advance(tick, unsaid, Input.ACCEPTANCE_LOST)


def _spans(lapse: Lapse) -> Iterator[tuple[Place, Epoch]]:
    """What was forgotten: behind each of these places, and before that epoch."""
    said = [place.partition("/") for place in lapse.remembered.split(",") if place]
    known = [(Epoch(epoch), Seq(int(seq))) for epoch, _, seq in said]
    for place, later in pairwise((*known, (lapse.epoch, Seq(0)))):
        yield place, later[0]


def _is_lost(row: Delivery, place: Place, later: Epoch) -> bool:
    """Whether an ACK stands in what was forgotten. Another epoch of the place's ordinal stands behind it."""
    if row.accepted_epoch is None:
        return False
    epoch, seq = place
    within = epoch_ordinal(epoch) <= epoch_ordinal(row.accepted_epoch) < epoch_ordinal(later)
    return within and not (row.accepted_epoch == epoch and (row.accepted_seq or 0) <= seq)
