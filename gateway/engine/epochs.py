"""The own outbox when others know more of it than this node does: proofs are weighed, a new epoch begins.

What a new epoch carries over is what somebody may still wait for: obligations without an answer, and whatever
was appended while nobody could see it. Readers may get these twice; their ledgers know them by event id. What
this node had promised and forgotten is asked back in ``gateway.engine.recall``.

Source: "The stream" of ``docs/PROTOCOL.md``.
"""

from typing import Protocol

from gateway.engine import questioning, recall, repeating
from gateway.engine.effects import CopyRuns, EpochBegan, ForkFound, StreamShown
from gateway.engine.inputs import Now, StreamKnown
from gateway.engine.limits import EPOCHS_TOLD_MAX
from gateway.engine.own_stream import FORGETS, OwnStream, Reason, Standing
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from outbox.chain import Checkpoint, Entry, Head
from outbox.cursor import floor_in
from outbox.envelope import EVERYONE, decode_event, decode_payload, encode_payload
from outbox.forks import ForkProof
from outbox.ids import Epoch, Seq, epoch_ordinal, make_epoch
from outbox.recall import StreamEpoch
from outbox.records import DeliveryState, Identity
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
        if not _is_asked_about(tick, own, fork.epoch):
            _forgot(tick, own, fork.epoch)


def _weigh(tick: Tick, own: OwnStream, shown: Head) -> None:
    """A head that this node's key has signed must be in its outbox."""
    if not shown.epoch or _is_asked_about(tick, own, shown.epoch):
        return
    floor = tick.store.floor()
    if shown.seq < floor_in(shown.epoch, floor.head if floor else None):
        return  # it was in it, and was let go
    known = tick.store.head_at(shown.epoch, shown.seq)
    if known is None or (shown.hash and known.hash != shown.hash):
        _forgot(tick, own, shown.epoch)


def _forgot(tick: Tick, own: OwnStream, epoch: Epoch) -> None:
    own.forgot(max(epoch, tick.identity.epoch, key=epoch_ordinal))


def _is_asked_about(tick: Tick, own: OwnStream, epoch: Epoch) -> bool:
    """Whether an epoch is over and others were asked since what was forgotten of it.

    Where one began because of a failed sync nobody was asked: this may be an old copy of a home all the same,
    which nobody has told so before the sync failed.
    """
    since, ordinal = tick.identity.epoch, epoch_ordinal(epoch)
    if ordinal >= epoch_ordinal(since):
        return False
    for row in reversed(tick.store.ended_epochs()):
        if not _asked_nobody(tick, own, since):
            break
        since = row.epoch
    return ordinal < epoch_ordinal(since)


def _asked_nobody(tick: Tick, own: OwnStream, epoch: Epoch) -> bool:
    """Whether an own epoch that followed another one began because of a failed sync, as far as is known."""
    reason = own.reason_of(epoch)
    if reason is None and (first := tick.store.entries_after(epoch, Seq(0), 1)) and first[0].seq == 1:
        said = decode_payload(decode_event(first[0].body), StreamEpoch)
        return said.reason == Reason.FAILED_SYNC
    return reason is Reason.FAILED_SYNC


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
    previous, known, doubted = tick.identity.epoch, tick.store.shown(), tick.store.doubts()
    epoch = make_epoch(own.next_ordinal(previous), tick.entropy.entropy(_EPOCH_BYTES))
    tick.store.begin_epoch(epoch)
    tick.identity, tick.head = tick.store.identity(), tick.store.head()
    reason, asks = own.reason(previous), own.asks(previous)
    own.began(epoch, reason)
    past = tuple((row.epoch, row.shown) for row in tick.store.ended_epochs()[-EPOCHS_TOLD_MAX:])
    said = StreamEpoch(previous=previous, last_known=known.seq, reason=reason, remembered=past)
    tick.emit(recall.signal(tick, encode_payload(said)), EVERYONE)
    tick.open_incident(STREAM_EPOCH, epoch, f"{reason}: {previous} is remembered up to {known.seq}")
    tick.effects.append(EpochBegan(tick.identity))
    repeating.begin(tick, previous, known.seq)
    if reason in FORGETS:
        restored = reason is Reason.RESTORE
        certain = (previous, known.seq) if restored and not doubted else _oldest(tick)
        questioning.ask(tick, turns, certain, wait=asks, take_back=restored)
    elif doubted:
        questioning.repeat(tick, turns, doubted.values(), _oldest(tick))


def _oldest(tick: Tick) -> tuple[Epoch, Seq]:
    """Where this outbox begins. Since when it is another one than it was nobody says: who was met first may
    have gone back as well, and have read what this node wrote again.
    """
    start = tick.store.beginning()
    return start.epoch, start.seq
