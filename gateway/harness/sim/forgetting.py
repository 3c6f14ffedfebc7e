"""The judge of retention: what was forgotten had ended, was read, and was said to be forgotten."""

from collections.abc import Iterator

from gateway.engine.retention import DEAD_READER
from gateway.engine.streams import HISTORY_MISSED
from gateway.harness.sim.disk import Disk, forgotten_too_early
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.outbox import OutboxRead
from outbox.ids import EventId, NodeId
from outbox.records import DeliveryState


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
        if incident.kind == HISTORY_MISSED and not _taken_for_dead(mesh, name, incident.subject):
            what = f"{incident.subject} forgot what {name} had not read: {incident.detail}"
            yield Finding(Promise.CURSORS_ARE_HONEST, what)


def missed(reader: Disk, writer: Disk, event: EventId) -> bool:
    """Whether a reader that was away too long has missed an event that its writer had buried by then."""
    owed = [row for row in writer.ever_owed(event) if row.node == reader.identity().node]
    return skipped(reader, writer) and all(row.state is DeliveryState.DEAD_LETTER for row in owed)


def skipped(reader: Disk, writer: Disk) -> bool:
    """Whether a reader may have gone on at a floor: it says so, or the writer where it had read nothing."""
    told = reader.incident(HISTORY_MISSED, writer.identity().node) is not None
    return told or writer.incident(DEAD_READER, reader.identity().node) is not None


def _taken_for_dead(mesh: SimMesh, reader: NodeId, writer: str) -> bool:
    home = mesh.homes.get(NodeId(writer))
    return home is None or home.disk.incident(DEAD_READER, reader) is not None
