"""After a new epoch: what did this node do before it forgot?

The node that forgot asks each node whose events it takes, and engages nothing of that node until the answer
has come. The answer stands in the other's outbox behind everything that may have been dealt with before, so
it is read after it. What was ended is not done again; what was only accepted may be, and is reported as such.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from gateway.engine.doubts import POSSIBLE_DUPLICATE, DoubtsEnded, EndDoubts
from gateway.engine.latecomers import may_be_missed
from gateway.engine.limits import RECALL_REFS_MAX, REPEATED_MAX
from gateway.engine.tick import Arrived, Tick
from gateway.engine.timers import read_by
from gateway.engine.turns import Turns
from outbox.envelope import Ack, Event, decode_event, decode_payload, encode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq, event_id
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.recall import Ended, Recall, Recalled
from outbox.records import Delivery, DeliveryState, Received, TurnState

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
    """An operator says that nobody else will answer: what waits is engaged, and reported."""
    doubted = tick.store.doubts()
    for source in doubted:
        for row in tick.store.open_turns():
            if row.source == source:
                suspect(tick, row.event_id)
        tick.store.trust(source)
        turns.withheld.trust(tick, source)
    return DoubtsEnded(request.req, tuple(doubted))


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


def answer(tick: Tick, arrived: Arrived) -> None:
    """Tell a node which of our events it has ended, as far as we have read its answers."""
    asked = decode_payload(arrived.event, Recall)
    after = Seq(0)
    if asked.read is not None and asked.read[0] == tick.identity.epoch:
        after = asked.read[1]
    again = [] if asked.more else tick.store.deliveries_after(arrived.source, after)
    rows = {row.event_id: row for row in again}
    for ref in asked.open:
        row = tick.store.delivery(event_id(ref), arrived.source)
        if row is not None:
            rows[row.event_id] = row
    told = [row for row in rows.values() if _answered(row)]
    for part, more in _cut(told):
        payload = Recalled(
            since=asked.since,
            ended=tuple(_told(row) for row in part if _is_ended(row)),
            accepted=tuple(row.event_id for row in part if not _is_ended(row)),
            more=more or asked.more,
        )
        tick.emit(signal(tick, encode_payload(payload)), (arrived.source,))


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
