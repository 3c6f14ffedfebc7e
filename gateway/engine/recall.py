"""After a new epoch: what did this node do before it forgot?

The node that forgot asks each node whose events it takes, and engages nothing of that node until the answer
has come. The answer stands in the other's outbox behind everything that may have been dealt with before, so
it is read after it. What was ended is not done again; what was only accepted may be, and is reported as such.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST
from gateway.engine.doubts import POSSIBLE_DUPLICATE, DoubtsEnded, EndDoubts
from gateway.engine.errands import Task
from gateway.engine.latecomers import may_be_missed
from gateway.engine.limits import LOOKED_PAST, RECALL_REFS_MAX, REPEATED_MAX
from gateway.engine.tick import Arrived, Tick
from gateway.engine.timers import read_by
from gateway.engine.turnkey import parse_turn_key
from gateway.engine.turns import Turns
from outbox.envelope import Ack, Event, decode_event, decode_payload, encode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq, event_id, event_id_ms
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.recall import Ended, Recall, Recalled
from outbox.records import Delivery, DeliveryState, Errand, Received, TurnState

DUPLICATE_ENGAGEMENT = "duplicate_engagement"
_WITHOUT_TURN = (DeliveryState.EMITTED, DeliveryState.RETRY_PENDING)
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


# --- the node that forgot


def ask(
    tick: Tick, turns: Turns, since: Epoch, unseen: Iterable[Event], *, wait: bool, take_back: bool
) -> None:
    """Ask every node whose events may have come here; without ``wait`` all is taken for forgotten.

    ``unseen`` is what was said here and nobody has seen: ends among it may be second ones.
    """
    me, cursors = tick.identity.node, tick.store.cursors()
    open_of: dict[NodeId, list[EventId]] = {}
    for event in unseen:
        for row in tick.store.ledger(event.corr_id) if event.kind == Kind.ACK and event.corr_id else ():
            if row.state is TurnState.DONE and row.event_id not in open_of.get(row.source, ()):
                open_of.setdefault(row.source, []).append(row.event_id)
    for row in tick.store.open_turns():
        open_of.setdefault(row.source, []).append(row.event_id)
        if row.source == me or not wait:
            suspect(tick, row.event_id)
    for sent in tick.store.deliveries(_WITHOUT_TURN, REPEATED_MAX):  # a reply within this node waits for room
        if sent.node == me:
            suspect(tick, sent.event_id)
    sources = {*cursors, *open_of, *(peer.node for peer in tick.view.peers(me))} - {me}
    for source in sorted(sources) if wait else ():
        _question(tick, source, since, open_of.get(source, []))
        tick.store.doubt(source, since)
    turns.doubt(tick, take_back=take_back)


def ask_again(tick: Tick) -> None:
    """Ask a node once more that has provably read the question and did not answer.

    It may have gone back itself since it answered, or begun at a floor behind the question.
    """
    old = tick.questions.old(tick.now.mono_ms)
    doubts = tick.store.doubts() if old else {}
    for node, seq in old:
        upto = read_by(tick, node)
        if node not in doubts:
            tick.questions.answered(node)
        elif upto is not None and upto >= seq:
            waiting = [row.event_id for row in tick.store.open_turns() if row.source == node]
            _question(tick, node, doubts[node], waiting)


def _question(tick: Tick, node: NodeId, since: Epoch, refs: list[EventId]) -> None:
    read = tick.store.cursor(node)
    place = (read.epoch, read.seq) if read is not None else None
    for part, more in _cut(refs):
        payload = Recall(since=since, read=place, open=tuple(part), more=more)
        seq = tick.emit(signal(tick, encode_payload(payload)), (node,))
    tick.questions.asked(node, seq, tick.now.mono_ms)


def hear(tick: Tick, turns: Turns, arrived: Arrived) -> None:
    """A node says what it has read of our answers to its events."""
    said = decode_payload(arrived.event, Recalled)
    if tick.store.doubts().get(arrived.source) != said.since:
        _hear_another(tick, arrived.source, said)
        return
    for ended in said.ended:
        for row in tick.store.turns_of(arrived.source, event_id(ended.ref)):
            _end(tick, turns, row, ended)
    for ref in said.accepted:  # also what is not here yet: it may come again behind this answer
        suspect(tick, event_id(ref))
    if not said.more:
        tick.store.trust(arrived.source)
        tick.questions.answered(arrived.source)
        turns.withheld.trust(tick, arrived.source)


def _hear_another(tick: Tick, source: NodeId, said: Recalled) -> None:
    """A copy of a node may have given the first answer, which knows less. What it did not know comes yet."""
    for ref in said.accepted if said.since == tick.identity.epoch else ():
        if not tick.store.turns_of(source, event_id(ref)):
            suspect(tick, event_id(ref))
    for ended in said.ended if said.since == tick.identity.epoch else ():
        for row in tick.store.turns_of(source, event_id(ended.ref)):
            if row.delivery_count and (row.state is not TurnState.DONE or _ended_since(tick, row)):
                suspect(tick, row.event_id)


def release(tick: Tick, turns: Turns, request: EndDoubts) -> DoubtsEnded:
    """An operator says that nobody else will answer: what waits is reported, and then engaged."""
    doubted = tick.store.doubts()
    for source, since in doubted.items():
        tick.errands.begin(tick, Releasing(turns, Errand(Task.RELEASE, source, f"{since} ")))
    return DoubtsEnded(request.req, tuple(doubted))


class Releasing:
    """Report what a node has sent and what is here now; when all is reported the node is believed."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns
        self._since, _, reported = row.detail.partition(" ")
        self._left = iter(sorted(key for key in turns.of(NodeId(row.subject)) if key > reported))

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        source, keys = NodeId(self.row.subject), list(islice(self._left, most))
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
        if row.delivery_count and _ended_since(tick, row):
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
    turns.end_as_before(tick, row, ended.outcome, ended.error)


def _ended_since(tick: Tick, row: Received) -> bool:
    """Whether the end of a turn was said where nobody else had seen it: so it was not the end that is
    known."""
    if (row.source, row.event_id) in tick.said:
        return True  # in this very tick: it stands in no outbox yet
    seen = {past.epoch: past.shown for past in tick.store.ended_epochs()}
    for entry in tick.store.events_about(row.event_id):
        event = decode_event(entry.body)
        if event.kind != Kind.ACK or decode_payload(event, Ack).status is not AckStatus.PROCESSED:
            continue
        first = tick.store.first_position(event.event_id)
        if first is None or first[1] > seen.get(first[0], Seq(0)):
            return True
    return False


def suspect(tick: Tick, event: EventId) -> None:
    """It may be done a second time: whether it was done before is forgotten."""
    tick.open_incident(POSSIBLE_DUPLICATE, event, "accepted before this node forgot it; perhaps dealt with")


# --- the node that is asked


class Asked(msgspec.Struct, frozen=True):
    """What a node asks, and how far it was told: what it hears twice it takes for done twice."""

    since: Epoch
    read: Seq
    """How far it remembers to have read this epoch."""
    asked_ms: int
    """What was sent later is not asked for."""
    told: tuple[EventId, NodeId | None] = (OLDEST[1], OLDEST[2])


def answer(tick: Tick, arrived: Arrived) -> None:
    """Tell a node which of our events it has ended, as far as we have read its answers.

    What it names and has read is told at once, all that it may not know of in parts, each by an event.
    """
    asked, source = decode_payload(arrived.event, Recall), arrived.source
    if _is_being_told(tick, source, asked.since):
        return
    place = asked.read
    read = place[1] if place is not None and place[0] == tick.identity.epoch else Seq(0)
    rows = [tick.store.delivery(event_id(ref), source) for ref in asked.open]
    _tell(tick, source, asked.since, [row for row in rows if row is not None and row.seq <= read], more=True)
    if not asked.more:
        _begin(tick, source, Asked(asked.since, read, tick.now.wall_ms))


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
        asked_for = [row for row in rows if event_id_ms(row.event_id) <= asked.asked_ms]
        more = last is not None and len(asked_for) == len(rows)
        _tell(tick, source, asked.since, asked_for, more=more)
        if not more or last is None:
            return 0
        self._asked = replace(asked, told=last)
        self.row = replace(self.row, detail=msgspec.json.encode(self._asked).decode())
        return most


def _tell(tick: Tick, source: NodeId, since: Epoch, rows: list[Delivery], *, more: bool) -> None:
    told = [row for row in rows if _answered(row)]
    if more and not told:
        return
    for part, another in _cut(told):
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
    return Ended(ref=row.event_id, outcome=row.outcome or Outcome.OK, error=error)


def _cut(items: list[_Item]) -> Iterator[tuple[list[_Item], bool]]:
    """Parts that fit into one event each, at least one, and whether another one follows."""
    for at in range(0, max(1, len(items)), RECALL_REFS_MAX):
        yield items[at : at + RECALL_REFS_MAX], at + RECALL_REFS_MAX < len(items)
