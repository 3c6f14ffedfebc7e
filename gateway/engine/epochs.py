"""The own outbox when others know more of it than this node does: proofs are weighed, a new epoch begins.

What a new epoch carries over is what somebody may still wait for: obligations without an answer, and whatever
was appended while nobody could see it. Readers may get these twice; their ledgers know them by event id. What
this node had promised and forgotten is asked back in ``gateway.engine.recall``.

Source: "The stream" of ``docs/PROTOCOL.md``.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec.structs import replace

from gateway.engine import recall
from gateway.engine.effects import CopyRuns, EpochBegan, ForkFound, StreamShown
from gateway.engine.inputs import Now, StreamKnown
from gateway.engine.limits import EPOCHS_TOLD_MAX, REPEATED_MAX
from gateway.engine.own_stream import FORGETS, OwnStream, Reason, Standing
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.chain import Checkpoint, Entry, Head
from outbox.cursor import floor_in
from outbox.envelope import EVERYONE, Event, decode_event, decode_header, encode_payload
from outbox.forks import ForkProof
from outbox.ids import Epoch, NodeId, epoch_ordinal, make_epoch
from outbox.kinds import Kind
from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX
from outbox.recall import StreamEpoch
from outbox.records import Delivery, DeliveryState, Identity
from outbox.store import Store
from stateroom.view import View

STREAM_EPOCH = "stream_epoch"
OWN_FORK = "own_stream_forked"
COPY_RUNS = "copy_runs"
_EPOCH_BYTES = 6
_SENT_AGAIN = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})
_ANSWERED = frozenset({DeliveryState.ACCEPTED, DeliveryState.PROCESSED, DeliveryState.REPLIED})
_SHOWN = frozenset({Standing.ALONE, Standing.PROVEN})
_ACTIVE = _SHOWN | {Standing.FORGOTTEN, Standing.COPIED}


# --- what others show


def hear(tick: Tick, own: OwnStream, item: StreamKnown) -> None:
    """A peer says how far it knows this outbox, and shows the checkpoint (its signature was verified)."""
    if item.checkpoint is not None:
        _weigh(tick, own, item.checkpoint.head)
        _tell_fork(tick, item.checkpoint)
    own.answered(item.peer, tick.now.mono_ms)


def look(tick: Tick, own: OwnStream) -> None:
    """What this node itself has said in the state room, which outlives its journal, and proofs against it."""
    me = tick.identity.node
    said = tick.view.node(me)
    if said is not None and said.outbox_epoch is not None:
        _weigh(tick, own, Head(said.outbox_epoch, said.head_seq, bytes.fromhex(said.head_hash)))
    cursors = tick.view.cursors.get(me)
    if cursors is not None:
        _weigh(tick, own, Head(*cursors.head, b""))
    for fork in tick.view.forks.get(me, ()):
        subject = f"{me}/{fork.epoch}"
        if tick.store.incident(OWN_FORK, subject) is None:  # the proof stays; it is told once
            tick.open_incident(OWN_FORK, subject, f"two histories at {fork.seq}")
        own.forgot(fork.epoch)


def _weigh(tick: Tick, own: OwnStream, shown: Head) -> None:
    """A head that this node's key has signed must be in its outbox."""
    if not shown.epoch or epoch_ordinal(shown.epoch) < epoch_ordinal(tick.identity.epoch):
        return
    floor = tick.store.floor()
    if shown.seq < floor_in(shown.epoch, floor.head if floor else None):
        return  # it was in it, and was let go
    known = tick.store.head_at(shown.epoch, shown.seq)
    if known is None or (shown.hash and known.hash != shown.hash):
        own.forgot(shown.epoch)


def _tell_fork(tick: Tick, shown: Checkpoint) -> None:
    """Two histories under one key: whoever has both tells, also of itself."""
    known = tick.store.head_at(shown.epoch, shown.seq)
    other = tick.store.checkpoint_from(shown.epoch, shown.seq)
    if known is None or other is None or known.hash == shown.hash:
        return
    leaves = tuple(entry.leaf for entry in _between(tick, known, other))
    tick.effects.append(ForkFound(ForkProof(shown, other, known.hash, leaves)))


def _between(tick: Tick, start: Head, end: Checkpoint) -> list[Entry]:
    if end.seq == start.seq:
        return []
    page = tick.store.read(start, 1, 1)
    assert page is not None, "a checkpoint stands after its entries"
    return list(page.entries)


# --- showing


def show(tick: Tick, own: OwnStream) -> bool:
    """Show the outbox as soon as it may be shown; until then what is appended is held back."""
    if standing_of(tick.store, tick.view, own, tick.now) in _SHOWN:
        own.shown = True
        tick.store.release()
        tick.effects.append(StreamShown(tick.identity.node, tick.head))
    elif tick.drafts:
        tick.store.hold()
    return own.shown


def watch_for_copies(tick: Tick, own: OwnStream) -> None:
    """New epochs that never end it: somebody else writes with this node's key."""
    if not own.is_due(tick.head.epoch):
        return
    if standing_of(tick.store, tick.view, own, tick.now) is Standing.COPIED:
        what = "another process goes on writing with the key of this node"
        tick.open_incident(COPY_RUNS, tick.identity.node, what)
        tick.effects.append(CopyRuns(what))


def wake_ms(store: Store, view: View, own: OwnStream, now: Now) -> int | None:
    """When a tick has something to do about the own outbox, on the monotonic clock."""
    standing = standing_of(store, view, own, now)
    return now.mono_ms if standing in _ACTIVE else own.next_ms()


class Heads(Protocol):
    """What of a store is asked here."""

    def identity(self) -> Identity:
        """Whose outbox it is."""
        ...

    def head(self) -> Head:
        """How far it goes."""
        ...


def standing_of(store: Heads, view: View, own: OwnStream, now: Now) -> Standing:
    """Where the own outbox stands now."""
    me, head = store.identity().node, store.head()
    settled = own.settled(head.epoch)
    if settled is not None:
        return settled
    claims = {
        node
        for node in view.cursors
        if node != me and (read := view.cursor(node, me)) is not None and _beyond(read, head)
    }
    peers = {peer.node for peer in view.peers(me)}
    return own.standing(head.epoch, peers, claims & peers, now.mono_ms)


def _beyond(read: tuple[Epoch, int], head: Head) -> bool:
    return (epoch_ordinal(read[0]), read[1]) > (epoch_ordinal(head.epoch), head.seq)


# --- a new epoch


def begin_if_due(tick: Tick, own: OwnStream, turns: Turns) -> bool:
    """Begin the epoch that is due, before anything else happens in this tick."""
    if not own.is_due(tick.head.epoch):
        return False
    due = standing_of(tick.store, tick.view, own, tick.now) is Standing.FORGOTTEN
    if due:
        _begin(tick, own, turns)
    return due


def _begin(tick: Tick, own: OwnStream, turns: Turns) -> None:
    previous, known = tick.identity.epoch, tick.store.shown()
    unseen = list(_after(tick, known))
    epoch = make_epoch(own.next_ordinal(previous), tick.entropy.entropy(_EPOCH_BYTES))
    tick.store.begin_epoch(epoch)
    tick.identity, tick.head = tick.store.identity(), tick.store.head()
    own.began(epoch)
    past = tuple((row.epoch, row.shown) for row in tick.store.ended_epochs()[-EPOCHS_TOLD_MAX:])
    said = StreamEpoch(previous=previous, last_known=known.seq, reason=own.reason, remembered=past)
    tick.emit(recall.signal(tick, encode_payload(said)), EVERYONE)
    tick.open_incident(STREAM_EPOCH, epoch, f"{own.reason}: {previous} is remembered up to {known.seq}")
    tick.effects.append(EpochBegan(tick.identity))
    _owe_again(tick)
    latest = {decode_header(entry.header).event_id: entry for entry in unseen}
    for entry in latest.values():  # what was said several times is said once more
        _say_again(tick, entry)
    if own.reason in FORGETS:
        ended = [decode_event(entry.body) for entry in unseen]
        recall.ask(tick, turns, epoch, ended, wait=own.ask, take_back=own.reason is Reason.RESTORE)


def _after(tick: Tick, known: Head) -> Iterator[Entry]:
    """What nobody has seen of the epoch that ends."""
    head, count = known, 0
    while count < REPEATED_MAX and (page := tick.store.read(head, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)):
        yield from page.entries
        head, count = page.checkpoint.head, count + len(page.entries)


def _owe_again(tick: Tick) -> None:
    """Whatever has no answer yet is sent again: its place in the epoch before may be another's by now."""
    for row in tick.store.deliveries([DeliveryState.EMITTED], REPEATED_MAX):
        again = replace(row, state=DeliveryState.RETRY_PENDING, next_at_ms=tick.now.wall_ms)
        tick.store.put_delivery(again)


def _say_again(tick: Tick, entry: Entry) -> None:
    """What nobody has seen: the same event, as its next attempt.

    What has no answer yet is sent again when its row says so. What has one was answered here, where it could
    be seen all the same, or was given up: it is said once more so that the outbox tells of it.
    """
    event = decode_event(entry.body)
    rows = tick.store.obligations(event.event_id)
    if any(row.state in _SENT_AGAIN for row in rows):
        return
    last = max(attempt_of(other, event) for other in tick.store.events_about(event.event_id))
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
