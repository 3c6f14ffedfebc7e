"""Following a stream: does a page go on where we stand, is all in it that we want, who is to blame if not.

The chain says what the writer wrote; its checkpoint's signature was verified before the tick. So a page that
does not follow on is the fault of whoever brought it: of a relay if it came over one, else of the writer.
What an event in a page does is in ``gateway.engine.receiver``.
"""

from enum import StrEnum
from typing import NamedTuple

from gateway.engine import farewell, forks, receiver, revoked
from gateway.engine.effects import CaughtUp, CursorMoved, StreamBroken
from gateway.engine.inputs import FloorRead, LinkUp, PageRead, RelayCaught
from gateway.engine.inquiries import ask_open
from gateway.engine.mirrors import Mirrors
from gateway.engine.peers import reached
from gateway.engine.residents import Residents
from gateway.engine.standstill import flows
from gateway.engine.tick import Stream, Tick
from gateway.engine.turns import Turns
from outbox.chain import Checkpoint, Entry, Excerpt, Head, Page, Stub, follow
from outbox.chain import genesis as genesis_of
from outbox.errors import BodyWithheld, BrokenChain, ForeignEpoch, StreamForked
from outbox.ids import NodeId, epoch_ordinal
from outbox.readership import withheld

RELAY_TAMPERED = "relay_tampered"
HISTORY_MISSED = "history_missed"


class Verdict(StrEnum):
    """What a page is to a reader."""

    FOLLOWS = "follows"
    READ_BEFORE = "read_before"
    FOREIGN_EPOCH = ForeignEpoch.code
    FORKED = StreamForked.code
    BROKEN = BrokenChain.code
    WITHHELD = BodyWithheld.code


class Judgement(NamedTuple):
    """A verdict and what it says."""

    verdict: Verdict
    head: Head
    """Where the reader stands afterwards."""
    entries: tuple[Entry | Stub, ...] = ()
    """What is new; of what was not asked for the header only."""
    why: str = ""


def judge(start: Head, page: Excerpt, reader: NodeId, *, complete: bool = False) -> Judgement:
    """What a page is to a reader that stands at ``start``: its cursor, or the genesis of a later epoch.

    It needs its own bodies, or all of them when the page has to be ``complete``.
    """
    if epoch_ordinal(page.epoch) < epoch_ordinal(start.epoch) or page.checkpoint.head == start:
        return Judgement(Verdict.READ_BEFORE, start)
    if page.epoch != start.epoch:
        why = f"the page is of epoch {page.epoch}, the reader stands in {start.epoch}"
        return Judgement(Verdict.FOREIGN_EPOCH, start, why=why)
    if page.checkpoint.seq <= start.seq:
        verdict = Verdict.BROKEN if page.checkpoint.seq == start.seq else Verdict.READ_BEFORE
        return Judgement(verdict, start, why=f"another {page.checkpoint.seq} was read before")
    new = page.entries
    if new and new[0].seq <= start.seq:  # it begins before the reader's place
        new = tuple(entry for entry in new if entry.seq > start.seq)
    rest = Excerpt(page.epoch, new, page.checkpoint)
    try:
        reached = follow(start, rest)
    except BrokenChain as error:
        return Judgement(Verdict.BROKEN, start, why=str(error))
    if (missing := withheld(rest, None if complete else reader)) is not None:
        return Judgement(Verdict.WITHHELD, start, why=f"entry {missing.seq} came without its body")
    return Judgement(Verdict.FOLLOWS, reached, new)


def read_page(tick: Tick, residents: Residents, turns: Turns, mirrors: Mirrors, read: PageRead) -> None:
    """Handle a page of another node's outbox, or report that it does not follow on."""
    page = revoked.cut(tick.view, read.node, read.page)
    if page is None:
        return  # of a node that was put out: nobody takes it, and nobody is to blame
    start, copied = _start(tick, read), mirrors.holds(read.node)
    judged = judge(start, page, tick.identity.node, complete=copied)
    if tick.view.forked(read.node, read.page.epoch):
        judged = Judgement(Verdict.FORKED, start, why=f"{read.node} has written {read.page.epoch} twice")
    if judged.verdict is Verdict.FOLLOWS:
        tick.via = read.relay
        stream = Stream(read.node, page.epoch)
        for entry in judged.entries:
            if isinstance(entry, Entry):
                receiver.take_entry(tick, residents, turns, stream, entry)
            else:
                receiver.overhear(tick, turns, read.node, entry)
        if copied:
            whole = tuple(entry for entry in judged.entries if isinstance(entry, Entry))
            mirrors.keep(tick, read.node, Page(page.epoch, whole, page.checkpoint, start.hash))
        tick.via = None
        _move(tick, turns, read.node, page.checkpoint)
        farewell.read_on(tick, turns, read.node)
    elif judged.verdict is not Verdict.READ_BEFORE and page is read.page:
        _refuse(tick, read, judged)


def _start(tick: Tick, read: PageRead) -> Head:
    """Where following begins: at the cursor, or at the genesis of an epoch that comes after it."""
    known, epoch = tick.store.cursor(read.node), read.page.epoch
    if known is None or epoch_ordinal(epoch) > epoch_ordinal(known.epoch):
        return genesis_of(tick.identity.mesh, read.node, epoch)
    return known


def _refuse(tick: Tick, read: PageRead, judged: Judgement) -> None:
    """A page that was not taken: its writer wrote twice, or whoever brought it is to blame."""
    verdict, why = judged.verdict, judged.why
    if forked := forks.find(tick, read):
        verdict, why = Verdict.FORKED, forked
    if verdict is Verdict.FOREIGN_EPOCH and read.relay is None:
        forks.note_recreation(tick, read, why)
    if read.relay is not None and verdict is not Verdict.FORKED:
        _blame(tick, read.relay, read.node, f"{verdict}: {why}")
    tick.effects.append(StreamBroken(read.node, verdict, why, read.relay, read.link))


def _move(tick: Tick, turns: Turns, node: NodeId, reached: Checkpoint) -> None:
    head = reached.head
    tick.store.put_cursor(node, head, reached.signature)
    tick.effects.append(CursorMoved(node, head))
    flows(tick, node)
    if tick.peers.moved(node, head):
        tick.effects.append(CaughtUp(node))
        turns.withheld.go_on(node, tick.now)
    else:
        turns.withheld.stream_moved(node, tick.now)


def see_floors(tick: Tick, turns: Turns) -> None:
    """The room tells it too: who has read nothing of an outbox begins there, and misses nothing.

    Who has begun goes on there only where the links find nobody with what lies between.
    """
    for node in tick.view.peers(tick.identity.node):
        known = tick.store.cursor(node.node)
        if node.floor is not None and (known is None or not known.seq):
            at, mesh = node.floor, tick.identity.mesh
            floor = Checkpoint(mesh, node.node, at.epoch, at.seq, at.hash, b"")
            read_floor(tick, turns, FloorRead(node.node, floor))


def read_floor(tick: Tick, turns: Turns, read: FloorRead) -> None:
    """The writer has forgotten what stands below: a reader that is not as far goes on there.

    It does not happen to one that shows itself. Who begins misses nothing, who had begun is told so.
    """
    floor, known = read.floor, tick.store.cursor(read.node)
    if tick.view.ended(read.node, floor.epoch) is not None:
        return
    if known is not None and _order(known) >= _order(floor.head):
        return
    if known is not None and known.seq:
        tick.open_incident(
            HISTORY_MISSED, read.node, f"from {known.epoch}/{known.seq} to {floor.epoch}/{floor.seq}"
        )
        ask_open(tick, read.node)
    _move(tick, turns, read.node, floor)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq


def caught(tick: Tick, item: RelayCaught) -> None:
    """A link has found out by itself that its peer does not pass on what it was given."""
    _blame(tick, item.relay, item.node, f"{item.code}: {item.what}")


def _blame(tick: Tick, relay: NodeId, node: NodeId, why: str) -> None:
    """The writer of the stream is innocent: its outbox is read over another link."""
    tick.open_incident(RELAY_TAMPERED, relay, f"outbox of {node}, {why}")


def note_heads(tick: Tick, link: LinkUp) -> set[NodeId]:
    """Which streams have more to tell than was read.

    What was read already has ended its standstill, whatever that was before this process began.
    """
    for head in link.heads:
        if head.node in tick.peers.stalled and reached(tick.store.cursor(head.node), head):
            flows(tick, head.node)
    return tick.peers.up(revoked.readable(tick.view, link), tick.store.cursors())
