"""After a new epoch: what did this node do before it forgot? What the answers mean; ``questioning`` asks.

The node that forgot asks each node whose events it takes, and engages nothing of that node until the answer
has come. The answer stands in the other's outbox behind everything that may have been dealt with before, so
it is read after it. What was ended is not done again; what was only accepted may be, and is reported as such.
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gateway.engine.doubts import POSSIBLE_DUPLICATE, DoubtsEnded, EndDoubts
from gateway.engine.errands import Task
from gateway.engine.inorder import InOrder
from gateway.engine.latecomers import may_be_missed
from gateway.engine.limits import RECALL_REFS_MAX
from gateway.engine.tick import Arrived, Tick
from gateway.engine.turnkey import parse_turn_key
from gateway.engine.turns import Turns
from outbox.envelope import Ack, Event, decode_event, decode_payload
from outbox.ids import EventId, NodeId, Seq, event_id
from outbox.kinds import AckStatus, Kind
from outbox.recall import Ended, Recalled
from outbox.records import Errand, Received, TurnState

DUPLICATE_ENGAGEMENT = "duplicate_engagement"
_Item = TypeVar("_Item")


def signal(tick: Tick, payload: msgspec.Raw) -> Event:
    """An event from gateway to gateway."""
    return Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.SIGNAL,
        source_node_id=tick.identity.node,
        created_at=tick.stamp,
        payload=payload,
    )


def cut(items: list[_Item]) -> Iterator[tuple[list[_Item], bool]]:
    """Parts that fit into one event each, at least one, and whether another one follows."""
    for at in range(0, max(1, len(items)), RECALL_REFS_MAX):
        yield items[at : at + RECALL_REFS_MAX], at + RECALL_REFS_MAX < len(items)


def subject_of(arrived: Arrived) -> str:
    """The subject of an errand about what stands in one event: in the order in which it was read."""
    return f"{arrived.source}/{arrived.epoch}/{arrived.entry.seq:012}"


def sender_of(row: Errand) -> NodeId:
    """Whose event such an errand is about."""
    return NodeId(row.subject.partition("/")[0])


def hear(tick: Tick, turns: Turns, arrived: Arrived) -> None:
    """A node says what it has read of our answers to its events. It names a thousand, and a page has many."""
    said = decode_payload(arrived.event, Recalled)
    for ref in (*(ended.ref for ended in said.ended), *said.accepted):
        event_id(ref)
    for ended in said.ended:
        if ended.by is not None:
            event_id(ended.by)
    row = Errand(Task.HEARD, subject_of(arrived), msgspec.json.encode(said).decode())
    tick.errands.begin(tick, Hearing(turns, row))
    if not said.more and tick.store.doubts().get(arrived.source) == said.since:
        tick.questions.answered(arrived.source)
        tick.errands.drop(tick, Task.AGAIN, arrived.source)


class Hearing:
    """Do as a node has said; when that was the last of its answer it is believed again."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns
        self._said = msgspec.json.decode(row.detail, type=Recalled)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        said, source = self._said, sender_of(self.row)
        ended = said.ended[:most]
        accepted = said.accepted[: most - len(ended)]
        part = replace(said, ended=ended, accepted=accepted)
        last = len(ended) + len(accepted) < most and not said.more
        if tick.store.doubts().get(source) != said.since:
            _hear_another(tick, source, part)
        else:
            self._hear(tick, source, part, last=last)
        self._said = replace(said, ended=said.ended[len(ended) :], accepted=said.accepted[len(accepted) :])
        self.row = replace(self.row, detail=msgspec.json.encode(self._said).decode())
        return len(ended) + len(accepted)

    def _hear(self, tick: Tick, source: NodeId, said: Recalled, *, last: bool) -> None:
        for ended in said.ended:
            for row in tick.store.turns_of(source, ended.ref):
                _end(tick, self._turns, row, ended)
        for ref in said.accepted:  # also what is not here yet: it may come again behind this answer
            suspect(tick, ref)
        if last:
            tick.store.trust(source)
            self._turns.withheld.trust(tick, source)


def _hear_another(tick: Tick, source: NodeId, said: Recalled) -> None:
    """A copy of a node may have given the first answer, which knows less. What it did not know comes yet."""
    for ref in said.accepted if said.since == tick.identity.epoch else ():
        if not tick.store.turns_of(source, ref):
            suspect(tick, ref)
    for ended in said.ended if said.since == tick.identity.epoch else ():
        for row in tick.store.turns_of(source, ended.ref):
            if row.delivery_count and (row.state is not TurnState.DONE or _ended_since(tick, row, ended)):
                suspect(tick, row.event_id)


def release(tick: Tick, turns: Turns, request: EndDoubts) -> DoubtsEnded:
    """An operator says that nobody else will answer: what waits is reported, and then engaged."""
    doubted = tick.store.doubts()
    for source in doubted:
        give_up(tick, turns, source)
    return DoubtsEnded(request.req, tuple(doubted))


def give_up(tick: Tick, turns: Turns, source: NodeId) -> None:
    """A node that is doubted will not answer any more."""
    since = tick.store.doubts()[source]
    tick.errands.begin(tick, Releasing(turns, Errand(Task.RELEASE, source, f"{since} ")))


class Releasing:
    """Report what a node has sent and what is here now; when all is reported the node is believed."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns
        self._since, _, reported = row.detail.partition(" ")
        self.left = InOrder(turns.all(), NodeId(row.subject), reported)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        if not self.left.sort(most):
            return most
        source, keys = NodeId(self.row.subject), self.left.take(most)
        for key in keys:
            suspect(tick, parse_turn_key(key)[1])
        if len(keys) == most:
            self.row = replace(self.row, detail=f"{self._since} {keys[-1]}")
        elif tick.store.doubts().get(source) == self._since:
            tick.store.trust(source)
            self._turns.withheld.trust(tick, source)
        return len(keys)


def _end(tick: Tick, turns: Turns, row: Received, ended: Ended) -> None:
    """It was ended before, and its sender knows: it is not done again."""
    if row.state is TurnState.DONE:
        if row.delivery_count and _ended_since(tick, row, ended):
            tick.open_incident(
                DUPLICATE_ENGAGEMENT, row.event_id, f"ended before and again by {row.to_agent}"
            )
        elif may_be_missed(row):  # others may have had it, who were not here in this moment
            tick.note_incident(POSSIBLE_DUPLICATE, row.event_id, f"ended before, {row.to_agent} has left")
        return
    if turns.live_lease(row) is not None:  # taken away: else it is dealt once more when the lease runs out
        tick.open_incident(DUPLICATE_ENGAGEMENT, row.event_id, f"ended before, {row.to_agent} has it again")
    elif row.delivery_count:  # given back meanwhile, or dealt before all was forgotten: which, no row says
        tick.open_incident(
            POSSIBLE_DUPLICATE, row.event_id, f"ended before, {row.to_agent} had it perhaps again"
        )
    turns.turn_away(tick, row, ended.error, ended.outcome)


def _ended_since(tick: Tick, row: Received, known: Ended) -> bool:
    """Whether the end of a turn that is said here is not the first one.

    It is not the one that its sender knows; or it stands where nobody had seen this outbox, for then the
    sender may have read no other. A sender of an older version does not name the ACK that it has read.
    """
    if (row.source, row.event_id) in tick.said:
        return True  # in this very tick: it stands in no outbox yet
    ends = _ends_said(tick, row.event_id)
    if ends and known.by is not None and known.by not in ends:
        return True
    seen = {past.epoch: past.shown for past in tick.store.ended_epochs()}
    places = [tick.store.first_position(end) for end in ends]
    return any(place is None or place[1] > seen.get(place[0], Seq(0)) for place in places)


def _ends_said(tick: Tick, ref: EventId) -> set[EventId]:
    """The terminal ACKs of an event that are left in the own outbox."""
    events = [decode_event(entry.body) for entry in tick.store.events_about(ref)]
    acks = [event for event in events if event.kind == Kind.ACK]
    return {ack.event_id for ack in acks if decode_payload(ack, Ack).status is AckStatus.PROCESSED}


def suspect(tick: Tick, event: EventId) -> None:
    """It may be done a second time: whether it was done before is forgotten."""
    tick.open_incident(POSSIBLE_DUPLICATE, event, "accepted before this node forgot it; perhaps dealt with")
