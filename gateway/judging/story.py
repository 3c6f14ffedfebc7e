"""What the journals of a run say that a report on its collected outboxes must say as well.

Classes of incidents that no journal of a sound run can show (gaps, unknown kinds, loops …) have no
part in it: a report that has one differs, and that is a fault.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator

import msgspec

from gateway.engine.forks import FORK, ROLLBACK
from gateway.judging.clocks import skews
from gateway.judging.facts import Mesh, Said
from outbox.delivery import is_for_several
from outbox.ids import NodeId
from outbox.kinds import Kind, Outcome
from outbox.records import Delivery, DeliveryState
from spark.limits import CLOCK_SKEW_MS
from spark.rules import IncidentClass


class Found(msgspec.Struct, frozen=True, order=True):
    """An incident, as the journals have it."""

    name: IncidentClass
    subject: str
    """The event; of clocks that disagree the two nodes, as in ``n1>n2``."""


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run that both can tell."""

    states: dict[tuple[str, DeliveryState], int]
    """How many events of a kind ended in a state."""
    incidents: tuple[Found, ...]
    """Open ones, turns that failed, and promises that were kept too late."""
    entries: dict[NodeId, int]


def tell(mesh: Mesh, accept_ms: int, process_ms: int) -> Story:
    """The story of these journals.

    ``accept_ms`` was promised from an event's creation to ``accepted``, ``process_ms`` from there to
    ``processed``.
    """
    found = {
        *open_incidents(mesh),
        *_failed(mesh),
        *_late(mesh, accept_ms, process_ms),
        *_clocks(mesh),
        *_forks(mesh),
    }
    return Story(
        states=dict(Counter((rows[0].kind, fate(rows)) for rows in obligations(mesh).values())),
        incidents=tuple(sorted({*found, *_late_answers(mesh)})),
        entries={node: facts.entries for node, facts in mesh.items()},
    )


def obligations(mesh: Mesh) -> dict[str, list[Delivery]]:
    """The delivery rows by the subject of their incidents: of an event, or of each node of several."""
    found: dict[str, list[Delivery]] = {}
    for facts in mesh.values():
        for row in facts.deliveries.values():
            found.setdefault(subject_of(row), []).append(row)
    return found


def subject_of(row: Delivery) -> str:
    """What incidents of this row are about."""
    return f"{row.event_id}@{row.node}" if is_for_several(row) else row.event_id


def _said(mesh: Mesh, subjects: Container[str]) -> Iterator[tuple[str, Said]]:
    """What each entry is about, of the subjects that there are: one of several nodes speaks for itself."""
    for node, facts in mesh.items():
        for entry in facts.outbox:
            if entry.corr_id is not None:
                of_one = f"{entry.corr_id}@{node}"
                yield (of_one if of_one in subjects else entry.corr_id), entry


_FURTHEST = tuple(DeliveryState)
"""In the order of their table: each is further than those before it, and a dead letter is the end."""


def fate(rows: Iterable[Delivery]) -> DeliveryState:
    """The furthest that an event came; a reply that followed its ACK is not in the delivery's state."""
    return max((_fate(row) for row in rows), key=_FURTHEST.index)


def _fate(row: Delivery) -> DeliveryState:
    if row.state is not DeliveryState.DEAD_LETTER and row.replied_at_ms is not None:
        return DeliveryState.REPLIED
    return row.state


def open_incidents(mesh: Mesh) -> Iterator[Found]:
    """Those that gateways have open and a report can find."""
    for facts in mesh.values():
        for incident in facts.incidents:
            if incident.closed_at_ms is None and incident.kind in set(IncidentClass):
                yield Found(IncidentClass(incident.kind), incident.subject)


def _failed(mesh: Mesh) -> Iterator[Found]:
    """Turns that failed, also where a reply came all the same and closed the incident."""
    for facts in mesh.values():
        for incident in facts.incidents:
            if incident.kind == IncidentClass.TURN_FAILED:
                yield Found(IncidentClass.TURN_FAILED, incident.subject)


def _late(mesh: Mesh, accept_ms: int, process_ms: int) -> Iterator[Found]:
    """What was accepted or processed, but not in time: what a crash may well have caused."""
    rows = {subject: rows[0] for subject, rows in obligations(mesh).items()}
    accepted: dict[str, int] = {}
    done: dict[str, int] = {}
    for subject, entry in _said(mesh, rows):
        if entry.accepts:
            accepted[subject] = min(entry.at_ms, accepted.get(subject, entry.at_ms))
        elif entry.ends or entry.kind == Kind.REPLY:
            done[subject] = min(entry.at_ms, done.get(subject, entry.at_ms))
    for event, at_ms in accepted.items():
        if event in rows and at_ms > rows[event].created_at_ms + accept_ms:
            yield Found(IncidentClass.LATE_ACK, event)
    for event, at_ms in done.items():
        row = rows.get(event)
        if row is None or row.kind != Kind.MESSAGE or row.state is DeliveryState.DEAD_LETTER:
            continue
        if event in accepted and at_ms > accepted[event] + process_ms:
            yield Found(IncidentClass.ACCEPTED_NOT_PROCESSED, event)


def _late_answers(mesh: Mesh) -> Iterator[Found]:
    """What was given up here and done there."""
    owed = obligations(mesh)
    done = {
        subject
        for subject, entry in _said(mesh, owed)
        if entry.kind == Kind.REPLY or (entry.ends and entry.outcome is Outcome.OK)
    }
    for subject, rows in owed.items():
        if fate(rows) is DeliveryState.DEAD_LETTER and subject in done:
            yield Found(IncidentClass.ANSWERED_AFTER_DEAD_LETTER, subject)


def _forks(mesh: Mesh) -> Iterator[Found]:
    """Epochs that were provably written twice, also where their writer goes on in a later one."""
    for facts in mesh.values():
        for incident in facts.incidents:
            if incident.kind in {FORK, ROLLBACK}:
                yield Found(IncidentClass.FORK, incident.subject)


def _clocks(mesh: Mesh) -> Iterator[Found]:
    for (source, target), least_ms in skews(mesh).items():
        if least_ms < -CLOCK_SKEW_MS:
            yield Found(IncidentClass.CLOCK_SKEW, f"{source}>{target}")
