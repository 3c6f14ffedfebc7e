"""What a new epoch carries over from the one before, part by part.

Obligations without an answer are due at once: their places may be another's by now. What nobody has seen is
said once more, so that the outbox tells of it: the same event, as its next attempt. A part is done before
anything else happens in its tick, so that what stands in the outbox is all that was said.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.tick import Tick
from outbox.chain import Entry
from outbox.envelope import Event, decode_event, decode_header
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState, Errand

_SENT_AGAIN = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})
_ANSWERED = frozenset({DeliveryState.ACCEPTED, DeliveryState.PROCESSED, DeliveryState.REPLIED})
_Place = tuple[NodeId, Seq, EventId]
_FIRST: _Place = (NodeId(""), Seq(-1), EventId(f"evt_{'0' * 32}"))


def begin(tick: Tick, ended: Epoch, seen: Seq) -> None:
    """An epoch has begun; of the one that ended so much was seen."""
    tick.errands.begin(tick, OwingAgain(Errand(Task.OWING, tick.identity.node)))
    tick.errands.begin(tick, SayingAgain(Errand(Task.SAYING, ended, str(seen))))


class OwingAgain:
    """Let each attempt be made again that stands in no epoch but an ended one."""

    def __init__(self, row: Errand) -> None:
        self.row = row
        self._after = msgspec.json.decode(row.detail, type=_Place) if row.detail else _FIRST

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        rows = tick.store.emitted_after(self._after, most)
        for row in rows:
            if not stands_now(tick, row.event_id, row.attempt):
                again = replace(row, state=DeliveryState.RETRY_PENDING, next_at_ms=tick.now.wall_ms)
                tick.store.put_delivery(again)
        if rows:
            last = rows[-1]
            self._after = (last.node or NodeId(""), last.seq, last.event_id)
            self.row = replace(self.row, detail=msgspec.json.encode(self._after).decode())
        return len(rows)


class SayingAgain:
    """Say once more what nobody has seen of an epoch that has ended; what was said several times, once."""

    def __init__(self, row: Errand) -> None:
        self.row = row

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        epoch, seq = Epoch(self.row.subject), Seq(int(self.row.detail))
        entries = tick.store.entries_after(epoch, seq, most)
        said = {draft.header.event_id for draft in tick.drafts}
        latest = {decode_header(entry.header).event_id: entry for entry in entries}
        for event, entry in latest.items():
            if event not in said:
                _say_again(tick, entry)
        if entries:
            self.row = replace(self.row, detail=str(entries[-1].seq))
        return len(entries)


def stands_now(tick: Tick, event: EventId, attempt: int) -> bool:
    """Whether an attempt stands in the epoch of now."""
    place = tick.store.position_of(event, attempt)
    return place is not None and place[0] == tick.identity.epoch


def _say_again(tick: Tick, entry: Entry) -> None:
    """What has no answer yet is sent again when its row says so. What has one was answered here, where it
    could be seen all the same, or was given up.
    """
    event = decode_event(entry.body)
    rows = tick.store.obligations(event.event_id)
    if any(row.state in _SENT_AGAIN for row in rows):
        return
    last = max(attempt_of(other, event) for other in tick.store.events_about(event.event_id))
    if stands_now(tick, event.event_id, last):
        return
    first = tick.store.first_position(event.event_id)
    trace = replace(event.trace, attempt=last + 1, first_position=first)
    to = _takers(rows) if rows else decode_header(entry.header).to
    seq = tick.emit(replace(event, trace=trace), to)
    for row in rows:
        tick.store.put_delivery(replace(row, attempt=last + 1, seq=seq))
    if event.kind == Kind.ACK and event.corr_id is not None:
        tick.repeated |= {(NodeId(reader), event.corr_id) for reader in to}  # not twice in one tick


def _takers(rows: Iterable[Delivery]) -> tuple[NodeId, ...]:
    """Who has it although nobody has seen it: this node, or nobody."""
    return tuple(row.node for row in rows if row.node is not None and row.state in _ANSWERED)


def attempt_of(entry: Entry, event: Event) -> int:
    """The attempt that an entry is of an event; 0 when it is another event's."""
    header = decode_header(entry.header)
    return header.attempt if header.event_id == event.event_id else 0
