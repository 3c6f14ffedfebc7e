"""The judge of what seeds carried for others: copies are what the writer wrote, and only liars are blamed."""

from collections.abc import Iterator

from gateway.engine.standstill import STALLED
from gateway.engine.streams import RELAY_TAMPERED
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.mesh import SimMesh
from outbox.chain import Entry, Head, check_signature
from outbox.errors import PeerError
from outbox.ids import NodeId, Seq
from outbox.records import Copy

_ALL, _ALL_BYTES = 1_000_000, 1 << 40
_CERTAIN = 10
"""So many lies cannot all have been lost on their way."""


def judge_carried(mesh: SimMesh) -> Iterator[Finding]:
    """Every broken promise about copies, bodies and blame."""
    for name in mesh.members():
        home = mesh.homes[name]
        for copy in home.disk.copies():
            if copy.source in mesh.homes:
                yield from _copy(mesh, name, home.disk, copy)
        yield from _bodies(mesh, name, home.disk)
        yield from _blame(mesh, name, home.disk)
    liar = mesh.topology.lying
    caught = any(home.disk.incident(RELAY_TAMPERED, str(liar)) for home in mesh.homes.values())
    if sum(mesh.tampering.told.values()) >= _CERTAIN and not caught:
        yield Finding(Promise.LIARS_ARE_REFUSED, f"nobody has noticed that {liar} lies")


def _copy(mesh: SimMesh, name: NodeId, disk: Disk, copy: Copy) -> Iterator[Finding]:
    cursor = disk.cursor(copy.source)
    if cursor is None or (cursor.epoch == copy.epoch and cursor.seq != copy.last):
        stands = None if cursor is None else cursor.seq
        what = f"{name} copied {copy.source} to {copy.last} and has read it to {stands}"
        yield Finding(Promise.CURSORS_ARE_HONEST, what)
    start = Head(copy.epoch, Seq(copy.first - 1), b"")
    kept = disk.read_copy(copy.source, start, _ALL, _ALL_BYTES)
    assert kept is not None, "a copy holds something"
    if not any(_wrote(disk, copy, list(kept.entries)) for disk in mesh.homes[copy.source].histories()):
        yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} holds a copy of {copy.source} that it never wrote")
    try:
        check_signature(kept.checkpoint, mesh.keys.mesh, copy.source, mesh.keys.key(copy.source).verify)
    except PeerError as error:
        yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} holds an unsigned copy: {error}")


def _wrote(writer: Disk, copy: Copy, kept: list[Entry]) -> bool:
    entries = [
        entry for epoch, entry in writer.whole_outbox() if epoch == copy.epoch and entry.seq >= copy.first
    ]
    return entries[: len(kept)] == kept


def _bodies(mesh: SimMesh, name: NodeId, disk: Disk) -> Iterator[Finding]:
    written = {
        node: {entry.body for past in home.histories() for _, entry in past.whole_outbox()}
        for node, home in mesh.homes.items()
    }
    for agent in mesh.residents(name):
        for row in disk.inbox(agent.name, done=True, limit=_ALL):
            if row.source in written and row.body not in written[row.source]:
                what = f"{name} took {row.event_id} with a body that {row.source} did not write"
                yield Finding(Promise.LIARS_ARE_REFUSED, what)


def _blame(mesh: SimMesh, name: NodeId, disk: Disk) -> Iterator[Finding]:
    for incident in disk.incidents(open_only=False):
        if incident.kind == RELAY_TAMPERED and incident.subject != mesh.topology.lying:
            why = f"{incident.subject} for a liar: {incident.detail}"
            yield Finding(Promise.LIARS_ARE_REFUSED, f"{name} takes the honest {why}")
        honest = incident.subject in mesh.homes  # what a liar advertised and never wrote does not come
        if incident.kind == STALLED and honest and incident.closed_at_ms is None:
            yield Finding(Promise.EVERY_SEND_ENDS, f"{name} keeps {STALLED} of {incident.subject} open")
