"""Answers a node that has forgotten and asks which of our events it had dealt with before.

It is told what its own ACKs said, as far as we have read them. The answer is an event of our outbox and
stands behind every event that it is about. So when that node reads the answer it has read all of them
again.
"""

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST
from gateway.engine.errands import Task
from gateway.engine.limits import LOOKED_PAST
from gateway.engine.recall import cut, sender_of, signal, subject_of
from gateway.engine.tick import Arrived, Tick
from outbox.envelope import decode_payload, encode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq, event_id
from outbox.kinds import Outcome
from outbox.recall import Ended, Recall, Recalled
from outbox.records import Delivery, Errand


class Asked(msgspec.Struct, frozen=True):
    """What a node asks, and how far it was told: an end that it hears of twice it takes for two ends."""

    since: Epoch
    read: Seq
    """How far it remembers to have read this epoch."""
    told: tuple[EventId, NodeId | None] = (OLDEST[1], OLDEST[2])


def answer(tick: Tick, arrived: Arrived) -> None:
    """Tell a node which of our events it has ended, as far as we have read its answers.

    First what it names and has read, then all that it may not know of: in parts, each by an event.
    """
    asked, source = decode_payload(arrived.event, Recall), arrived.source
    refs = tuple(event_id(ref) for ref in asked.open)
    if _is_being_told(tick, source, asked.since):
        return
    place = asked.read
    read = place[1] if place is not None and place[0] == tick.identity.epoch else Seq(0)
    if refs:
        named = msgspec.json.encode(Named(asked.since, read, refs)).decode()
        tick.errands.begin(tick, AnsweringNamed(Errand(Task.NAMED, subject_of(arrived), named)))
    if not asked.more:
        _begin(tick, source, Asked(asked.since, read))


class Named(msgspec.Struct, frozen=True):
    """What a node asks by name, and is not told yet."""

    since: Epoch
    read: Seq
    refs: tuple[EventId, ...]


class AnsweringNamed:
    """Tell a node what became of events that it names, as far as it has read them."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        self._named = msgspec.json.decode(row.detail, type=Named)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        named, source = self._named, sender_of(self.row)
        refs, rest = named.refs[:most], named.refs[most:]
        rows = [tick.store.delivery(ref, source) for ref in refs]
        told = [row for row in rows if row is not None and row.seq <= named.read]
        _tell(tick, source, named.since, told, more=True)
        self._named = replace(named, refs=rest)
        self.row = replace(self.row, detail=msgspec.json.encode(self._named).decode())
        return len(refs)


def _is_being_told(tick: Tick, source: NodeId, since: Epoch) -> bool:
    row = tick.errands.get(Task.RECALL, source)
    return row is not None and msgspec.json.decode(row.detail, type=Asked).since == since


def _begin(tick: Tick, source: NodeId, asked: Asked) -> None:
    row = Errand(Task.RECALL, source, msgspec.json.encode(asked).decode())
    tick.errands.begin(tick, Answering(row))


class Answering:
    """Tell a node what became of all that it may not know of. The last part says that it is the last."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        self._asked = msgspec.json.decode(row.detail, type=Asked)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``. In the order of keys: a new attempt moves a row in any other."""
        asked, source = self._asked, NodeId(self.row.subject)
        rows, last = tick.store.deliveries_beyond(source, asked.read, asked.told, most * LOOKED_PAST)
        _tell(tick, source, asked.since, rows, more=last is not None)
        if last is None:
            return 0
        self._asked = replace(asked, told=last)
        self.row = replace(self.row, detail=msgspec.json.encode(self._asked).decode())
        return most


def _tell(tick: Tick, source: NodeId, since: Epoch, rows: list[Delivery], *, more: bool) -> None:
    told = [row for row in rows if _answered(row)]
    if more and not told:
        return
    for part, another in cut(told):
        payload = Recalled(
            since=since,
            ended=tuple(_told(row) for row in part if _is_ended(row)),
            accepted=tuple(row.event_id for row in part if not _is_ended(row)),
            more=another or more,
        )
        tick.emit(signal(tick, encode_payload(payload)), (source,))


def _answered(row: Delivery) -> bool:
    return row.accepted_at_ms is not None or _is_ended(row)


def _is_ended(row: Delivery) -> bool:
    return row.processed_at_ms is not None or row.replied_at_ms is not None


def _told(row: Delivery) -> Ended:
    error = row.error if row.dead_at_ms is None else None
    return Ended(ref=row.event_id, outcome=row.outcome or Outcome.OK, error=error, by=row.ended_by)
