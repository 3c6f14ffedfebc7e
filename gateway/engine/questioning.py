"""This node has forgotten what it did, and asks each node whose events it takes; what the answers mean is in
``recall``.

What there is to ask about may be a hundred thousand turns: it is asked in parts, and the last one says that
it is the last. Nothing of a node is dealt before it has answered that.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from gateway.engine.deliveries import OLDEST, Along, place_of
from gateway.engine.errands import Task
from gateway.engine.inorder import InOrder
from gateway.engine.recall import cut, signal, suspect
from gateway.engine.tick import Tick
from gateway.engine.timers import read_by
from gateway.engine.turnkey import parse_turn_key
from gateway.engine.turns import Turns
from outbox.envelope import decode_header, encode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq, epoch_ordinal
from outbox.kinds import Kind
from outbox.recall import Recall
from outbox.records import DeliveryState, Errand, TurnState

Place = tuple[Epoch, Seq]
"""How far an outbox was read."""


class Unsure(msgspec.Struct, frozen=True):
    """What a node has to find out since it began an epoch, and how far it has come."""

    since: Epoch
    ended: Epoch
    """An epoch before. Ends that were said in it, or in one after it, may be second ones."""
    seq: Seq
    """Not up to here: they stand where they are known, or were looked at."""
    wait: bool
    """Others are asked; else all is taken for forgotten."""
    reported: bool = False
    """What nobody can be asked about was reported before."""
    read: dict[NodeId, Place] = {}
    """How far each node was read when this epoch began. What came since is no reason to ask for less."""
    turn: str = ""
    """Up to here open turns were looked at, by their keys."""
    sent: Along | None = None
    """And what waits for another attempt; None while turns are left."""


def ask(tick: Tick, turns: Turns, certain: Place, *, wait: bool, take_back: bool) -> None:
    """Ask every node whose events may have come here; without ``wait`` all is taken for forgotten.

    Up to the place ``certain`` this outbox is what it was, and no end that it tells of is a second one.
    Whoever has sent something has left a cursor. Nothing of theirs is dealt from now on. What they are asked,
    and what is reported, takes a while.
    """
    me, since = tick.identity.node, tick.identity.epoch
    sources = {*tick.store.cursors(), *(peer.node for peer in tick.view.peers(me))} - {me}
    sources = {source for source in sources if tick.view.revoked(source) is None}
    for source in sorted(sources) if wait else ():
        tick.store.doubt(source, since)
    turns.doubt(tick, take_back=take_back)
    if take_back:
        tick.errands.begin(tick, TakingHands(turns, Errand(Task.HANDS, me)))
    read = {node: (head.epoch, head.seq) for node, head in tick.store.cursors().items()}
    unsure = Unsure(since, *certain, wait, read=read)
    row = Errand(Task.QUESTION, me, msgspec.json.encode(unsure).decode())
    tick.errands.begin(tick, Questioning(turns, row))


def repeat(tick: Tick, turns: Turns, asked_in: Iterable[Epoch], certain: Place) -> None:
    """An epoch begins that forgets nothing: who has not read the question in the one before passes it now."""
    me = tick.identity.node
    if (Task.QUESTION, me) in tick.errands:
        return  # it is not out yet
    read = {node: (head.epoch, head.seq) for node, head in tick.store.cursors().items()}
    since = max(asked_in, key=epoch_ordinal)
    unsure = Unsure(since, *certain, wait=True, reported=True, read=read)
    row = Errand(Task.QUESTION, me, msgspec.json.encode(unsure).decode())
    tick.errands.begin(tick, Questioning(turns, row))


class TakingHands:
    """Let the rows of turns that were in hands say that they are not. Nobody is asked before that is done."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._turns = turns

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        return self._turns.taken_back.write(tick, most)


class Questioning:
    """Ask each node about what it has sent and is open here, or was perhaps ended twice; report the rest."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._unsure = msgspec.json.decode(row.detail, type=Unsure)
        self.left = InOrder(turns.all(), None, self._unsure.turn)
        self._refs: dict[NodeId, list[EventId]] = {}

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``."""
        left = most
        for step in (self._ended, self._open, self._sent):
            left -= step(tick, left) if left else 0
        self._say(tick, last=left > 0)
        self.row = replace(self.row, detail=msgspec.json.encode(self._unsure).decode())
        return most - left

    def _ended(self, tick: Tick, most: int) -> int:
        """Of one epoch after another: this node may have begun some before it knew that it had gone back."""
        looked_at = self._ended_in(tick, most)
        while looked_at < most and (later := self._next_epoch(tick)) is not None:
            self._unsure = replace(self._unsure, ended=later, seq=Seq(0))
            looked_at += self._ended_in(tick, most - looked_at)
        return looked_at

    def _next_epoch(self, tick: Tick) -> Epoch | None:
        after, since = epoch_ordinal(self._unsure.ended), epoch_ordinal(self._unsure.since)
        later = (row.epoch for row in tick.store.ended_epochs() if after < row.ordinal < since)
        return next(later, None)

    def _ended_in(self, tick: Tick, most: int) -> int:
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
        if not self.left.sort(most):
            return most
        keys = self.left.take(most)
        for source, event, _ in map(parse_turn_key, keys):
            self._ask_about(tick, source, event)
            if not self._unsure.reported and (source == tick.identity.node or not self._unsure.wait):
                suspect(tick, event)
        if keys:
            self._unsure = replace(self._unsure, turn=keys[-1])
        return len(keys)

    def _sent(self, tick: Tick, most: int) -> int:
        """A reply within this node waits for room."""
        if self._unsure.reported:
            return 0
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
        for source in [source for source, doubted in tick.store.doubts().items() if doubted == since]:
            events, read = refs.get(source, []), self._unsure.read.get(source)
            if last:
                _question(tick, source, since, read, events)
            elif events:
                _part(tick, source, since, read, events, more=True)


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
        elif upto is not None and upto >= seq and not _is_asking(tick, node):
            read = tick.store.cursor(node)
            place = (read.epoch, read.seq) if read is not None else None
            again = Again(doubts[node], place)
            row = Errand(Task.AGAIN, node, msgspec.json.encode(again).decode())
            tick.errands.begin(tick, AskingAgain(turns, row))


def _is_asking(tick: Tick, node: NodeId) -> bool:
    return (Task.AGAIN, node) in tick.errands or tick.errands.any(Task.QUESTION)


class Again(msgspec.Struct, frozen=True):
    """What a node is asked once more, and how far that has come."""

    since: Epoch
    read: Place | None
    """How far it was read when this began."""
    turn: str = ""
    """Up to here open turns were named, by their keys."""


class AskingAgain:
    """Ask a node about what it has sent and is open here; the last part says that it is the last."""

    def __init__(self, turns: Turns, row: Errand) -> None:
        self.row = row
        self._again = msgspec.json.decode(row.detail, type=Again)
        self.left = InOrder(turns.all(), NodeId(row.subject), self._again.turn)

    def some(self, tick: Tick, most: int) -> int:
        """See ``errands.Work``. Who has answered, or is asked in a later epoch, is not asked any more."""
        node, again = NodeId(self.row.subject), self._again
        if tick.store.doubts().get(node) != again.since:
            return 0
        if not self.left.sort(most):
            return most
        keys = self.left.take(most)
        refs = list(dict.fromkeys(parse_turn_key(key)[1] for key in keys))
        if len(keys) < most:
            _question(tick, node, again.since, again.read, refs)
        else:
            _part(tick, node, again.since, again.read, refs, more=True)
            self._again = replace(again, turn=keys[-1])
            self.row = replace(self.row, detail=msgspec.json.encode(self._again).decode())
        return len(keys)


def _question(tick: Tick, node: NodeId, since: Epoch, read: Place | None, refs: list[EventId]) -> None:
    """The last part of a question."""
    for part, more in cut(refs):
        seq = _part(tick, node, since, read, part, more=more)
    tick.questions.asked(node, seq, tick.now.mono_ms)


def _part(
    tick: Tick, node: NodeId, since: Epoch, read: Place | None, refs: list[EventId], *, more: bool
) -> Seq:
    payload = Recall(since=since, read=read, open=tuple(refs), more=more)
    return tick.emit(signal(tick, encode_payload(payload)), (node,))
