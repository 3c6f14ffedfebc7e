"""The judge of incidents that agents told: each stands once in its outbox, and whoever read that has it.

It is open there, or closed once it was told to be over.
"""

from collections.abc import Iterator, Mapping

from gateway.engine.signals import REPORTED
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.forgetting import skipped
from gateway.harness.sim.mesh import SimMesh
from gateway.harness.sim.plan import Fault
from outbox.envelope import decode_event
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind


def judge_notices(mesh: SimMesh) -> Iterator[Finding]:
    """What was told and is not known, or is known otherwise; where nobody was put back to what it was."""
    if {Fault.RESTORE, Fault.CLONE} & set(mesh.plan.faults):
        return
    keys = {name: _keys(home.disk) for name, home in mesh.homes.items()}
    for (teller, subject), told in mesh.witness.reported.items():
        for event in told.values():
            if not mesh.homes[NodeId(teller)].disk.places_of(event):
                yield Finding(Promise.SENT_IS_KEPT, f"{teller} told {subject} in {event}, which is nowhere")
        for reader in mesh.names:
            if reader != teller:
                yield from _known(mesh.homes[reader].disk, mesh.homes[NodeId(teller)].disk, subject, told)
    for name, found in keys.items():
        for key, events in found.items():
            if len(events) > 1:
                yield Finding(Promise.SENT_IS_KEPT, f"{name} told {key} in {sorted(events)}")


def _known(reader: Disk, teller: Disk, subject: str, told: Mapping[bool, EventId]) -> Iterator[Finding]:
    name, source = reader.identity().node, teller.identity().node
    epochs = {epoch for event in told.values() for epoch, _ in teller.places_of(event)}
    if skipped(reader, teller) or epochs != {teller.identity().epoch}:
        return  # it may have begun behind what was said
    incident = reader.incident(REPORTED, f"{source}/{subject}")
    is_open = incident is not None and incident.closed_at_ms is None
    if is_open is (True in told):
        is_, should = ("open", "over") if is_open else ("not open", "open")
        yield Finding(Promise.EVERY_SEND_ENDS, f"{subject} of {source} is {is_} at {name}, and {should}")


def _keys(disk: Disk) -> dict[str, set[EventId]]:
    """Events of signals by agent and idempotency key."""
    found: dict[str, set[EventId]] = {}
    for _, entry in disk.whole_outbox():
        event = decode_event(entry.body)
        if event.kind == Kind.SIGNAL and event.idempotency_key is not None:
            found.setdefault(f"{event.source_agent_id}/{event.idempotency_key}", set()).add(event.event_id)
    return found
