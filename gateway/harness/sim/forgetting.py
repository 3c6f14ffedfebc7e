"""The judge of retention: what was forgotten had ended, was read, and was said to be forgotten."""

from collections.abc import Iterator

from gateway.engine.retention import DEAD_READER
from gateway.engine.streams import HISTORY_MISSED
from gateway.harness.sim.disk import Disk, forgotten_too_early
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.gateway import SimGateway
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.outbox import OutboxRead
from outbox.chain import Head
from outbox.ids import EventId, NodeId
from outbox.records import Copy, DeliveryState, Incident

ENDED = frozenset({DeliveryState.DEAD_LETTER, DeliveryState.SUPERSEDED})
_KNOWN_AFTER_MS = 120_000
"""A link that is up for so long has said what there is, and a dead one has been found out."""
_LATELY_MS = 9 * 60_000
"""Who is away for so long is waited for."""


def forgotten(mesh: SimMesh, name: NodeId, outbox: OutboxRead) -> Iterator[Finding]:
    """What one node forgot that it should not have."""
    disk, floor = mesh.homes[name].disk, mesh.homes[name].disk.floor()
    for row in forgotten_too_early(disk):
        yield Finding(Promise.EVERY_SEND_ENDS, f"{name} forgot {row.event_id} while it was {row.state}")
    if floor is not None and f"{floor.epoch}/{floor.seq}/{floor.hash.hex()}" not in outbox.floors:
        yield Finding(Promise.SENT_IS_KEPT, f"{name} forgot up to {floor.seq} and does not say so")
    for key, before in disk.forgotten_turns.items():
        again = disk.received(*key)
        if again is not None and again.delivery_count and before.delivery_count:
            yield Finding(Promise.ENGAGED_ONCE, f"{name} forgot its turn of {key[1]} and engaged it again")
    for incident in disk.incidents(open_only=False):
        if incident.kind != HISTORY_MISSED or _had_read(mesh, name, incident):
            continue
        if not _taken_for_dead(mesh, name, incident.subject):
            what = f"{incident.subject} forgot what {name} had not read: {incident.detail}"
            yield Finding(Promise.CURSORS_ARE_HONEST, what)


def given_up(mesh: SimMesh, reader: NodeId, incident: Incident) -> Iterator[Finding]:
    """At the moment when a reader goes on at a floor: whether an honest node that it may still meet has the
    rest."""
    gateway, writer = mesh.gateways.get(reader), NodeId(incident.subject)
    if incident.kind != HISTORY_MISSED or incident.closed_at_ms is not None or gateway is None:
        return
    cursor = gateway.home.disk.cursor(writer)
    assert cursor is not None, "it has begun, else it misses nothing"
    for peer in mesh.members():
        if peer in {reader, writer, mesh.topology.lying} or not mesh.topology.may_copy(reader, peer):
            continue
        if _waited_for(gateway, peer) and _has_rest(mesh.homes[peer].disk.copy(writer), cursor):
            what = f"{reader} gave up what follows {cursor.seq} of {writer}, which {peer} has"
            yield Finding(Promise.CURSORS_ARE_HONEST, what)


def _waited_for(gateway: SimGateway, peer: NodeId) -> bool:
    """Whether the link is up and was heard, or has not been gone for long enough."""
    now_ms, link = gateway.home.clock.wall_ms(), gateway.registry.link(peer)
    if link is not None:
        return now_ms - link.since_ms > _KNOWN_AFTER_MS
    down_ms = down.since_ms if (down := gateway.registry.down(peer)) is not None else gateway.began_ms
    return now_ms - down_ms < _LATELY_MS


def _has_rest(copy: Copy | None, cursor: Head) -> bool:
    return copy is not None and copy.epoch == cursor.epoch and copy.first <= cursor.seq + 1 <= copy.last


def missed(reader: Disk, writer: Disk, event: EventId) -> bool:
    """Whether a reader that was away too long has missed an event that its writer had buried by then, or sent
    elsewhere."""
    owed = [row for row in writer.ever_owed(event) if row.node == reader.identity().node]
    return skipped(reader, writer) and all(row.state in ENDED for row in owed)


def skipped(reader: Disk, writer: Disk) -> bool:
    """Whether a reader may have gone on at a floor: it says so, or the writer where it had read nothing."""
    told = reader.incident(HISTORY_MISSED, writer.identity().node) is not None
    return told or writer.incident(DEAD_READER, reader.identity().node) is not None


def _had_read(mesh: SimMesh, reader: NodeId, incident: Incident) -> bool:
    """Whether it went back from beyond the floor: it had said that it had read what lies below."""
    epoch, _, seq = incident.detail.rpartition(" ")[2].partition("/")
    places = [past.cursor(NodeId(incident.subject)) for past in mesh.homes[reader].lost]
    return any((place.epoch, place.seq) >= (epoch, int(seq)) for place in places if place is not None)


def _taken_for_dead(mesh: SimMesh, reader: NodeId, writer: str) -> bool:
    home = mesh.homes.get(NodeId(writer))
    return home is None or any(past.incident(DEAD_READER, reader) is not None for past in home.histories())
