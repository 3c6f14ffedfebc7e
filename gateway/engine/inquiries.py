"""What became of it? Asked of a node that has accepted an event and is silent, or whose answers were missed.

It repeats its ACKs. When it has no such event, its acceptance stood in a history that it does not have: it
was put back, or a copy of it took the event. Then it says so, and the event is sent again.
"""

from msgspec.structs import replace

from gateway.engine import acks
from gateway.engine.deliveries import advance
from gateway.engine.errands import Task
from gateway.engine.letters import notice
from gateway.engine.sweep import Sweep
from gateway.engine.tick import Tick
from outbox.delivery import Input, settled
from outbox.envelope import Signal, encode_payload
from outbox.ids import EventId, NodeId
from outbox.kinds import RULES, Kind
from outbox.records import Delivery, DeliveryState, Errand

STATUS_REQUEST = "status_request"
STATUS_UNKNOWN = "status_unknown"


def ask(tick: Tick, row: Delivery, node: NodeId) -> None:
    """Ask a node about one event."""
    _say(tick, STATUS_REQUEST, row.event_id, node)


def ask_open(tick: Tick, node: NodeId) -> None:
    """Part of a node's outbox was passed unread: the end of what it has accepted may stand there.

    So may the acceptance and the end of what went to another node since then: both may have done it. What
    it has not accepted otherwise is found lost as ever.
    """
    tick.errands.begin(tick, Asking(Errand(Task.ASKING, node)))


class Asking:
    """Ask a node about all that it has accepted, and then about what went to another one since."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        self._sweep = Sweep((DeliveryState.ACCEPTED, DeliveryState.SUPERSEDED), row.detail)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = self._sweep.take(tick.store, most)
        for row in rows:
            if row.node == self.row.subject and _is_open(row):
                ask(tick, row, row.node)
        self.row = replace(self.row, detail=self._sweep.written)
        return len(rows)


def _is_open(row: Delivery) -> bool:
    """Whether its end may still be heard."""
    if row.state is DeliveryState.SUPERSEDED:
        return RULES[Kind(row.kind)].processed and row.processed_at_ms is None
    return not settled(Kind(row.kind), row.state)


def answer(tick: Tick, source: NodeId, event: EventId) -> None:
    """A node asks about an event of its own: say again what was said of it, or that it is not here.

    A row outlives the obligation that asks for it, so what is not here was never taken, or was forgotten.
    """
    if rows := tick.store.turns_of(source, event):
        acks.repeat(tick, acks.combined(rows))
    else:
        _say(tick, STATUS_UNKNOWN, event, source)


def hear_unknown(tick: Tick, source: NodeId, event: EventId) -> None:
    """A node does not have what it was read to have accepted: the acceptance is lost."""
    row = tick.store.delivery(event, source)
    if row is not None and row.state is DeliveryState.ACCEPTED:
        unsaid = replace(row, accepted_epoch=None, accepted_seq=None)
        advance(tick, unsaid, Input.ACCEPTANCE_LOST)


def _say(tick: Tick, what: str, event: EventId, node: NodeId) -> None:
    signal = Signal(signal=what, ref=event)
    tick.emit(notice(tick, Kind.SIGNAL, encode_payload(signal), event), (node,))
