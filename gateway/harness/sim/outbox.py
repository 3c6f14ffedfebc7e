"""A whole outbox, read once and sorted by what a judge asks."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.engine.retention import RETENTION_FLOOR
from gateway.harness.sim.disk import Disk
from outbox.chain import extend, genesis
from outbox.envelope import Ack, DeadLetter, Event, Signal, decode_event, decode_header, decode_payload
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import RULES, AckStatus, Kind, Outcome

Place = tuple[Epoch, Seq]


@dataclass
class OutboxRead:
    """What one node has written."""

    hashes: dict[tuple[Epoch, int], bytes] = field(default_factory=dict)
    """The chain's hash at each position."""
    attempts: dict[EventId, list[int]] = field(default_factory=dict)
    owed: dict[EventId, None] = field(default_factory=dict)
    """Events that somebody must take."""
    keys: dict[str, set[EventId]] = field(default_factory=dict)
    """Events by agent and idempotency key."""
    accepted: dict[tuple[NodeId, EventId], set[EventId]] = field(default_factory=dict)
    """The ACKs that say accepted of each event of others, by its source."""
    promised: dict[tuple[NodeId, EventId], list[Ack]] = field(default_factory=dict)
    """What agents said of their work on each event, in order."""
    ended: dict[tuple[NodeId, EventId], set[EventId]] = field(default_factory=dict)
    """The terminal ACKs of each event that was taken."""
    refused: set[tuple[NodeId, EventId]] = field(default_factory=set)
    shown: set[EventId] = field(default_factory=set)
    """What stands where others can read it."""
    letters: dict[EventId, str] = field(default_factory=dict)
    """What it gave up, and why."""
    floors: set[str] = field(default_factory=set)
    """The places up to which it says that it has forgotten."""
    _wanted: list[tuple[Place, tuple[NodeId, ...] | str, Event]] = field(default_factory=list)

    def deliverable(self, reader: NodeId) -> Iterator[tuple[Place, Event]]:
        """What this node must take, of what was shown."""
        return ((place, event) for place, to, event in self._wanted if reader in to)

    def add(self, place: Place, to: tuple[NodeId, ...] | str, event: Event, *, shown: bool) -> None:
        """One entry more."""
        self.attempts.setdefault(event.event_id, []).append(event.trace.attempt)
        if shown:
            self.shown.add(event.event_id)
        if RULES[Kind(event.kind)].wakes:
            self.owed[event.event_id] = None
            if shown:
                self._wanted.append((place, to, event))
            if event.idempotency_key is not None:
                name = f"{event.source_agent_id}/{event.idempotency_key}"
                self.keys.setdefault(name, set()).add(event.event_id)
        elif event.kind == Kind.DEAD_LETTER and event.corr_id is not None:
            self.letters[event.corr_id] = decode_payload(event, DeadLetter).reason
        elif event.kind == Kind.SIGNAL:
            signal = decode_payload(event, Signal)
            if signal.signal == RETENTION_FLOOR:
                self.floors.add(signal.detail)
        elif event.kind == Kind.ACK:
            for reader in to:
                self._add_ack(NodeId(reader), event.event_id, decode_payload(event, Ack))

    def _add_ack(self, source: NodeId, event: EventId, ack: Ack) -> None:
        if ack.promises:
            self.promised.setdefault((source, ack.ref), []).append(ack)
        elif ack.status is AckStatus.ACCEPTED:
            self.accepted.setdefault((source, ack.ref), set()).add(event)
        elif ack.outcome is Outcome.REFUSED:
            self.refused.add((source, ack.ref))
        else:
            self.ended.setdefault((source, ack.ref), set()).add(event)


def read_outbox(disk: Disk) -> OutboxRead:
    """All of it, with what was forgotten."""
    read = OutboxRead()
    identity, head = disk.identity(), disk.genesis()
    read.hashes[head.epoch, 0] = head.hash
    for epoch, entry in disk.whole_outbox():
        if epoch != head.epoch:
            head = genesis(identity.mesh, identity.node, epoch)
        head = extend(head, (entry,))
        read.hashes[epoch, entry.seq] = head.hash
        to, event = decode_header(entry.header).to, decode_event(entry.body)
        read.add((epoch, entry.seq), to, event, shown=entry.seq <= disk.shown_to(epoch))
    return read
