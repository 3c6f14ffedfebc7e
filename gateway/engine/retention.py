"""How much of the own outbox is kept: by age, by count and by bytes, never more than may be forgotten.

The floor passes no delivery without an end, nothing that is held back, and nothing that an active reader has
not read; force passes readers, nothing else. A reader that was not seen for its lease is dead: it holds
nothing any more, an operator is told once, and it begins at the floor should it return. That lease is counted
by the monotonic clock while the gateway runs: a wall clock that jumps, or a week without a gateway, kills no
reader. The time of a batch is that of its last event id (UUIDv7).

Each move is one transaction and says so in the outbox itself. A move forgets a bounded number of entries, so
that no tick stands still; its answer says whether more is left to do.
"""

from collections.abc import Iterable

from gateway.engine import ledgerfloors, pastincidents
from gateway.engine.effects import Pruned
from gateway.engine.errands import Task
from gateway.engine.inputs import Prune
from gateway.engine.limits import INCIDENTS_CLOSED_KEPT, RETAIN_BATCHES_MAX, RETAIN_ENTRIES_MAX
from gateway.engine.policy import Retention
from gateway.engine.tick import Tick
from outbox.chain import Checkpoint
from outbox.envelope import EVERYONE, Event, Signal, encode_payload
from outbox.ids import Epoch, NodeId, Seq, epoch_ordinal, event_id_ms
from outbox.kinds import Kind
from outbox.limits import QUARANTINED_BYTES_KEPT, QUARANTINED_KEPT
from outbox.records import Batch, OutboxSize, Reader

DEAD_READER = "dead_reader"
RETENTION_FLOOR = "retention_floor"

_Place = tuple[int, int]
"""Ordinal of the epoch, seq."""

_TELLING = (Task.NAMED, Task.RECALL, Task.SAYING)
"""What these say is said before it is forgotten."""


class Retainer:
    """Remembers when it looked last; what must outlive the process is in the store."""

    def __init__(self, now_mono_ms: int) -> None:
        self._looked_ms = now_mono_ms

    def prune(self, tick: Tick, request: Prune) -> Pruned:
        """Forget what may go, or as much of it as one tick can."""
        rule = tick.policy.retention
        elapsed_ms, self._looked_ms = tick.now.mono_ms - self._looked_ms, tick.now.mono_ms
        readers = _see_readers(tick, rule, elapsed_ms)
        more = _retain(tick, rule, [] if request.force else readers)
        floor, size = tick.store.floor(), tick.store.size()
        seq = floor.seq if floor is not None else Seq(0)
        return Pruned(request.req, seq, size.entries, size.bytes, more=more)


def _retain(tick: Tick, rule: Retention, readers: list[Reader]) -> bool:
    """Whether more is to be done."""
    shown = tick.store.shown()
    read = [(epoch_ordinal(row.epoch), row.seq) for row in readers]
    bound = min([(epoch_ordinal(shown.epoch), shown.seq), *read])
    chosen = _within(_forgettable(tick, rule), bound)
    more = len(chosen) == RETAIN_BATCHES_MAX or _entries(chosen) >= RETAIN_ENTRIES_MAX
    chosen = _not_owed(tick, chosen)
    if any(tick.errands.any(task) for task in _TELLING):
        chosen = []
    if chosen:
        _say(tick, tick.store.move_floor(chosen[-1].epoch, chosen[-1].seq))
    older = pastincidents.grow_old(tick, rule.age_ms)
    closed_before_ms = tick.now.wall_ms - rule.age_ms
    tick.store.prune_incidents(
        closed_before_ms, INCIDENTS_CLOSED_KEPT, QUARANTINED_KEPT, QUARANTINED_BYTES_KEPT
    )
    return ledgerfloors.prune(tick) or older or (more and bool(chosen))


# --- what is old, or too much


def _forgettable(tick: Tick, rule: Retention) -> list[Batch]:
    """The oldest batches that are too old, or above what is kept: mostly not even the first one is."""
    size = tick.store.size()
    if not _chosen(tick, rule, size, tick.store.oldest_batches(1)):
        return []
    return _chosen(tick, rule, size, tick.store.oldest_batches(RETAIN_BATCHES_MAX))


def _chosen(tick: Tick, rule: Retention, size: OutboxSize, batches: Iterable[Batch]) -> list[Batch]:
    before_ms = tick.now.wall_ms - rule.age_ms
    entries, weight, chosen = size.entries, size.bytes, list[Batch]()
    for batch in batches:
        too_much = entries > rule.entries_max or weight > rule.bytes_max
        if not (too_much or event_id_ms(batch.event_id) < before_ms):
            break
        if _entries(chosen) >= RETAIN_ENTRIES_MAX:
            break
        chosen.append(batch)
        entries, weight = entries - batch.entries, weight - batch.bytes
    return chosen


def _entries(batches: list[Batch]) -> int:
    return sum(batch.entries for batch in batches)


def _within(batches: list[Batch], bound: _Place) -> list[Batch]:
    return [batch for batch in batches if (epoch_ordinal(batch.epoch), batch.seq) <= bound]


def _not_owed(tick: Tick, batches: list[Batch]) -> list[Batch]:
    """Those before the first entry whose delivery has no end, or whose blob the asker may still fetch."""
    if not batches:
        return batches
    last = batches[-1]
    unfetched = tick.store.first_unfetched(last.epoch, last.seq, tick.now.wall_ms)
    owed = [place for place in (tick.store.first_owed(last.epoch, last.seq), unfetched) if place is not None]
    if not owed:
        return batches
    first = min((epoch_ordinal(epoch), seq) for epoch, seq in owed)
    return [batch for batch in batches if (epoch_ordinal(batch.epoch), batch.seq) < first]


# --- who reads


def _see_readers(tick: Tick, rule: Retention, elapsed_ms: int) -> list[Reader]:
    """Everybody whose unread entries are kept. Those that are gone or dead hold nothing."""
    known = {row.node: row for row in tick.store.readers()}
    here = {node.node for node in tick.view.peers(tick.identity.node)}
    for node in known.keys() - here:
        tick.store.drop_reader(node)
        tick.close_incident(DEAD_READER, node)
    rows = [_see(tick, node, known.get(node), elapsed_ms) for node in sorted(here)]
    for row in rows:
        if row.unseen_ms < rule.reader_lease_ms:
            tick.close_incident(DEAD_READER, row.node)
        else:
            what = f"not seen for its lease; it has read up to {row.epoch}/{row.seq}"
            tick.open_incident(DEAD_READER, row.node, what)
    return [row for row in rows if row.unseen_ms < rule.reader_lease_ms]


def _see(tick: Tick, node: NodeId, before: Reader | None, elapsed_ms: int) -> Reader:
    epoch, seq = _published(tick, node, before)
    moved = before is None or (epoch, seq) != (before.epoch, before.seq)
    alive = moved or tick.view.online(node)
    unseen_ms = 0 if alive or before is None else before.unseen_ms + elapsed_ms
    row = Reader(node=node, epoch=epoch, seq=seq, unseen_ms=unseen_ms)
    if row != before:
        tick.store.put_reader(row)
    return row


def _published(tick: Tick, node: NodeId, before: Reader | None) -> tuple[Epoch, Seq]:
    """How far a node says it has read; what it said before counts when it is the later place."""
    said = tick.view.cursor(node, tick.identity.node)
    places = [(before.epoch, before.seq)] if before is not None else [(tick.store.genesis().epoch, Seq(0))]
    if said is not None:
        places.append(said)
    return max(places, key=lambda place: (epoch_ordinal(place[0]), place[1]))


# --- what follows from a floor


def _say(tick: Tick, floor: Checkpoint) -> None:
    signal = Signal(signal=RETENTION_FLOOR, detail=f"{floor.epoch}/{floor.seq}/{floor.hash.hex()}")
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.SIGNAL,
        source_node_id=tick.identity.node,
        created_at=tick.stamp,
        payload=encode_payload(signal),
    )
    tick.emit(event, EVERYONE)
