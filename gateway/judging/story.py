"""What the journals of a run say that a report on its collected outboxes must say as well."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from gateway.judging.invariants import Mesh
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState
from spark.rules import IncidentClass


class Found(msgspec.Struct, frozen=True, order=True):
    """An incident, as the journals have it."""

    name: IncidentClass
    event_id: EventId


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run that both can tell."""

    states: dict[tuple[str, DeliveryState], int]
    """How many events of a kind ended in a state."""
    incidents: tuple[Found, ...]
    """Open ones, and promises that were kept too late."""
    entries: dict[NodeId, int]


def tell(mesh: Mesh, accept_ms: int, process_ms: int) -> Story:
    """The story of these journals.

    ``accept_ms`` was promised from an event's creation to ``accepted``, ``process_ms`` from there to
    ``processed``.
    """
    rows = (row for facts in mesh.values() for row in facts.deliveries.values())
    return Story(
        states=dict(Counter((row.kind, fate(row)) for row in rows)),
        incidents=tuple(sorted({*open_incidents(mesh), *_late(mesh, accept_ms, process_ms)})),
        entries={node: facts.seq for node, facts in mesh.items()},
    )


def fate(row: Delivery) -> DeliveryState:
    """The furthest that an event came; a reply that followed its ACK is not in the delivery's state."""
    if row.state is DeliveryState.DEAD_LETTER:
        return row.state
    if row.replied_at_ms is not None:
        return DeliveryState.REPLIED
    return row.state


def open_incidents(mesh: Mesh) -> Iterator[Found]:
    """Those that gateways have open and a report can find."""
    for facts in mesh.values():
        for incident in facts.incidents:
            if incident.closed_at_ms is None and incident.kind in set(IncidentClass):
                yield Found(IncidentClass(incident.kind), EventId(incident.subject))


def _late(mesh: Mesh, accept_ms: int, process_ms: int) -> Iterator[Found]:
    """What was accepted or processed, but not in time: what a crash may well have caused."""
    entries = [entry for facts in mesh.values() for entry in facts.outbox if entry.corr_id is not None]
    accepted: dict[EventId, int] = {}
    done: dict[EventId, int] = {}
    for entry in entries:
        assert entry.corr_id is not None
        if entry.accepts:
            accepted[entry.corr_id] = min(entry.at_ms, accepted.get(entry.corr_id, entry.at_ms))
        elif entry.ends or entry.kind == Kind.REPLY:
            done[entry.corr_id] = min(entry.at_ms, done.get(entry.corr_id, entry.at_ms))
    rows = {event: row for facts in mesh.values() for event, row in facts.deliveries.items()}
    for event, at_ms in accepted.items():
        if event in rows and at_ms > rows[event].created_at_ms + accept_ms:
            yield Found(IncidentClass.LATE_ACK, event)
    for event, at_ms in done.items():
        row = rows.get(event)
        if row is None or row.kind != Kind.MESSAGE or row.state is DeliveryState.DEAD_LETTER:
            continue
        if event in accepted and at_ms > accepted[event] + process_ms:
            yield Found(IncidentClass.ACCEPTED_NOT_PROCESSED, event)
