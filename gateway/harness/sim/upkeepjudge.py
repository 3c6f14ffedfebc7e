"""The judge of maintenance: what a node announced last is what everybody who read that knows of it, and an
incident that comes of waiting says whose maintenance it may come of.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.engine.letters import NEVER_ACCEPTED, NOT_PROCESSED, about
from gateway.engine.maintenance import DURING, MAINTENANCE, announced
from gateway.engine.standstill import STALLED
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.forgetting import skipped
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.plan import Fault
from outbox.delivery import is_final
from outbox.envelope import MaintenanceNotice, Signal, decode_event, decode_payload
from outbox.ids import Epoch, EventId, NodeId
from outbox.kinds import Kind
from outbox.records import Incident
from outbox.timestamps import parse_rfc3339


class _Said(NamedTuple):
    epoch: Epoch
    event: EventId
    notice: MaintenanceNotice


def judge_upkeep(mesh: SimMesh) -> Iterator[Finding]:
    """What was announced and is not known, or known otherwise; where nobody was put back to what it was."""
    if {Fault.RESTORE, Fault.CLONE} & set(mesh.plan.faults):
        return
    for teller in mesh.members():
        home = mesh.homes[teller]
        said = list(_said(home.disk))
        for event in sorted(mesh.announcements[teller].told - {each.event for each in said}):
            yield Finding(Promise.SENT_IS_KEPT, f"{teller} announced in {event}, which is nowhere")
        for reader in mesh.members():
            disk, last = mesh.homes[reader].disk, said[-1] if said else None
            begins_later = reader != teller and (
                skipped(disk, home.disk) or (last is not None and last.epoch != home.disk.identity().epoch)
            )
            if not begins_later:
                yield from _known(disk, teller, last.notice if last is not None else None)


def _said(disk: Disk) -> Iterator[_Said]:
    for epoch, entry in disk.whole_outbox():
        event = decode_event(entry.body)
        if event.kind == Kind.SIGNAL and (notice := decode_payload(event, Signal).maintenance) is not None:
            yield _Said(epoch, event.event_id, notice)


def _known(disk: Disk, teller: NodeId, last: MaintenanceNotice | None) -> Iterator[Finding]:
    name, incident = disk.identity().node, disk.incident(MAINTENANCE, teller)
    is_open = incident is not None and incident.closed_at_ms is None
    if is_open is (last is None or last.over):
        what = f"{name} has the maintenance of {teller} {'open' if is_open else 'not open'}: {last}"
        yield Finding(Promise.EVERY_SEND_ENDS, what)
    elif is_open and incident is not None and last is not None:
        until_ms = parse_rfc3339(last.until) if last.until is not None else None
        if announced(incident).until_ms != until_ms or last.reason not in incident.detail:
            what = f"{name} knows the maintenance of {teller} as {incident.detail!r}: {last}"
            yield Finding(Promise.EVERY_SEND_ENDS, what)


def unmarked(disk: Disk, incident: Incident) -> Iterator[Finding]:
    """Judged as an incident is written: whether it says that somebody who is waited for is away as announced,
    and says it of nobody else.
    """
    if incident.closed_at_ms is not None or incident.kind not in {NEVER_ACCEPTED, NOT_PROCESSED, STALLED}:
        return
    away = {node for node in _waited_for(disk, incident) if _is_away(disk, node, incident.opened_at_ms)}
    _, mark, named = incident.detail.partition(DURING)
    if bool(mark) is not bool(away) or (mark and named not in away):
        what = f"{disk.identity().node} tells {incident.kind} of {incident.subject}: {incident.detail!r}"
        yield Finding(Promise.EVERY_SEND_ENDS, f"{what}, and {sorted(away)} are in maintenance")


def _waited_for(disk: Disk, incident: Incident) -> set[NodeId]:
    if incident.kind == STALLED:
        return {NodeId(incident.subject), NodeId(incident.detail.partition(" ")[0])}
    rows = disk.obligations(EventId(incident.subject.partition("@")[0]))
    open_rows = [row for row in rows if about(row) == incident.subject and not is_final(row.state)]
    return {disk.identity().node, *(row.node for row in open_rows if row.node is not None)}


def _is_away(disk: Disk, node: NodeId, at_ms: int) -> bool:
    row = disk.incident(MAINTENANCE, node)
    if row is None or row.closed_at_ms is not None:
        return False
    until_ms = announced(row).until_ms
    return until_ms is None or at_ms < until_ms
