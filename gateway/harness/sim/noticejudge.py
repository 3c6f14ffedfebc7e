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
from outbox.ids import Epoch, EventId, NodeId
from outbox.kinds import Kind


def judge_notices(mesh: SimMesh) -> Iterator[Finding]:
    """What was told and is not known, or is known otherwise; where nobody was put back to what it was."""
    if {Fault.RESTORE, Fault.CLONE} & set(mesh.plan.faults):
        return
    said = {name: _Said(home.disk) for name, home in mesh.homes.items()}
    for (node, subject), told in mesh.witness.reported.items():
        if NodeId(node) in mesh.outcasts:
            continue
        teller = said[NodeId(node)]
        for event in told.values():
            if event not in teller.epochs:
                yield Finding(Promise.SENT_IS_KEPT, f"{node} told {subject} in {event}, which is nowhere")
        for reader in mesh.members():
            if reader != node:
                yield from _known(mesh.homes[reader].disk, teller, subject, told)
    if Fault.RETENTION in mesh.plan.faults:
        return  # a key is forgotten with the entry that it stands for: after fifteen more, there
    for name, found in said.items():
        for key, events in found.keys.items():
            if len(events) > 1:
                yield Finding(Promise.SENT_IS_KEPT, f"{name} told {key} in {sorted(events)}")


class _Said:
    """The signals of agents in an outbox, with those that it has forgotten."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.epochs: dict[EventId, set[Epoch]] = {}
        self.keys: dict[str, set[EventId]] = {}
        """Events by agent and idempotency key."""
        for epoch, entry in disk.whole_outbox():
            event = decode_event(entry.body)
            if event.kind == Kind.SIGNAL and event.idempotency_key is not None:
                self.epochs.setdefault(event.event_id, set()).add(epoch)
                key = f"{event.source_agent_id}/{event.idempotency_key}"
                self.keys.setdefault(key, set()).add(event.event_id)


def _known(reader: Disk, teller: _Said, subject: str, told: Mapping[bool, EventId]) -> Iterator[Finding]:
    name, source = reader.identity().node, teller.disk.identity()
    epochs = {epoch for event in told.values() for epoch in teller.epochs.get(event, ())}
    if skipped(reader, teller.disk) or epochs != {source.epoch}:
        return  # it may have begun behind what was said
    incident = reader.incident(REPORTED, f"{source.node}/{subject}")
    is_open = incident is not None and incident.closed_at_ms is None
    if is_open is (True in told):
        found, due = ("open", "over") if is_open else ("not open", "open")
        yield Finding(Promise.EVERY_SEND_ENDS, f"{subject} of {source.node} is {found} at {name}, and {due}")
