"""After a new epoch: what did this node do before it forgot?

The node that forgot asks each node whose events it takes, and engages nothing of that node until the answer
has come. The answer stands in the other's outbox behind everything that may have been dealt with before, so
it is read after it. What was ended is not done again; what was only accepted may be, and is reported as such.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST, Along, place_of
from gateway.engine.doubts import POSSIBLE_DUPLICATE, DoubtsEnded, EndDoubts
from gateway.engine.errands import Task
from gateway.engine.latecomers import may_be_missed
from gateway.engine.limits import RECALL_REFS_MAX
from gateway.engine.tick import Arrived, Tick
from gateway.engine.timers import read_by
from gateway.engine.turnkey import parse_turn_key
from gateway.engine.turns import Turns
from outbox.envelope import Ack, Event, decode_event, decode_header, decode_payload, encode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq, event_id
from outbox.kinds import AckStatus, Kind
from outbox.recall import Ended, Recall, Recalled
from outbox.records import DeliveryState, Errand, Received, TurnState

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


Place = tuple[Epoch, Seq]
"""How far an outbox was read."""


class Unsure(msgspec.Struct, frozen=True):
    """What a node has to find out since it began an epoch, and how far it has come."""

    since: Epoch
    ended: Epoch
    """The epoch before. Ends that were said in it and that nobody has seen may be second ones."""
    seq: Seq
    """How far it was seen, or looked at."""
    wait: bool
    """Others are asked; else all is taken for forgotten."""
    read: dict[NodeId, Place] = {}
    """How far each node was read when this epoch began. What came since is no reason to ask for less."""
    turn: str = ""
    """Up to here open turns were looked at, by their keys."""
    sent: Along | None = None
    """And what waits for another attempt; None while turns are left."""


def ask(tick: Tick, turns: Turns, ended: Epoch, seen: Seq, *, wait: bool, take_back: bool) -> None:
    """Ask every node whose events may have come here; without ``wait`` all is taken for forgotten.

    Nothing of theirs is dealt from now on. What they are asked, and what is reported, takes a while.
    """
    me, since = tick.identity.node, tick.identity.epoch
    senders = {parse_turn_key(key)[0] for key in turns.keys_of(None)}
    sources = {*tick.store.cursors(), *senders, *(peer.node for peer in tick.view.peers(me))} - {me}
    sources = {source for source in sources if tick.view.revoked(source) is None}
    for source in sorted(sources) if wait else ():
        tick.store.doubt(source, since)
    turns.doubt(tick, take_back=take_back)
    read = {node: (head.epoch, head.seq) for node, head in tick.store.cursors().items()}
    unsure = Unsure(since, ended, seen, wait, read)
    row = Errand(Task.QUESTION, me, msgspec.json.encode(unsure).decode())
    tick.errands.begin(tick, Questioning(turns, row))


class Questioning:
    """Ask each node about what it has sent and what is open here, or was ended unseen; report the rest."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._unsure = msgspec.json.decode(row.detail, type=Unsure)
        self._turns = iter(sorted(key for key in turns.keys_of(None) if key > self._unsure.turn))
        self._refs: dict[NodeId, list[EventId]] = {}

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        left = most
        for step in (self._unseen, self._open, self._sent):
            left -= step(tick, left) if left else 0
        self._say(tick, last=left > 0)
        self.row = replace(self.row, detail=msgspec.json.encode(self._unsure).decode())
        return most - left

    def _unseen(self, tick: Tick, most: int) -> int:
        entries = tick.store.entries_after(self._unsure.ended, self._unsure.seq, most)
        for header in (decode_header(entry.header) for entry in entries):
            if header.kind == Kind.ACK and header.corr_id is not None:
                for row in tick.store.ledger(header.corr_id):
                    if row.state is TurnState.DONE:
                        self._ask_about(tick, row.source, row.event_id)
        if entries:
            self._unsure = replace(self._unsure, seq=entries[-1].seq)
        return len(entries)

    def _open(self, tick: Tick, most: int) -> int:
        keys = list(islice(self._turns, most))
        for source, event, _ in map(parse_turn_key, keys):
            self._ask_about(tick, source, event)
            if source == tick.identity.node or not self._unsure.wait:
                suspect(tick, event)
        if keys:
            self._unsure = replace(self._unsure, turn=keys[-1])
        return len(keys)

    def _sent(self, tick: Tick, most: int) -> int:
        """A reply within this node waits for room."""
        rows = tick.store.deliveries_in(DeliveryState.RETRY_PENDING, self._unsure.sent or OLDEST, most)
        for row in rows:
            if row.node == tick.identity.node:
                suspect(tick, row.event_id)
        if rows:
            self._unsure = replace(self._unsure, sent=place_of(rows[-1]))
        return len(rows)

    def _ask_about(self, tick: Tick, source: NodeId, event: EventId) -> None:
        if source == tick.identity.node or not self._unsure.wait:
            return
        refs = self._refs.setdefault(source, [])
        if event not in refs:
            refs.append(event)

    def _say(self, tick: Tick, *, last: bool) -> None:
        """Ask what there is to ask; the last part says that it is the last, to each."""
        refs, self._refs, since = self._refs, {}, self._unsure.since
        if not last:
            for source, events in refs.items():
                _part(tick, source, since, self._unsure.read.get(source), events, more=True)
            return
        for source, doubted in tick.store.doubts().items():
            if doubted == since:
                _question(tick, source, since, self._unsure.read.get(source), refs.get(source, []))


def ask_again(tick: Tick, turns: Turns) -> None:
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
            waiting = [parse_turn_key(key)[1] for key in turns.keys_of(node)]
            read = tick.store.cursor(node)
            place = (read.epoch, read.seq) if read is not None else None
            _question(tick, node, doubts[node], place, waiting)


def _question(tick: Tick, node: NodeId, since: Epoch, read: Place | None, refs: list[EventId]) -> None:
    for part, more in cut(refs):
        seq = _part(tick, node, since, read, part, more=more)
    tick.questions.asked(node, seq, tick.now.mono_ms)


def _part(
    tick: Tick, node: NodeId, since: Epoch, read: Place | None, refs: list[EventId], *, more: bool
) -> Seq:
    payload = Recall(since=since, read=read, open=tuple(refs), more=more)
    return tick.emit(signal(tick, encode_payload(payload)), (node,))


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
        self._left = iter(sorted(key for key in turns.keys_of(NodeId(row.subject)) if key > reported))

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
    turns.turn_away(tick, row, ended.error, ended.outcome)


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
