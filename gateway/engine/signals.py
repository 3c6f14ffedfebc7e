"""Incidents that a report found go to every node as signals, and open there like those a node finds itself.

A signal is never acknowledged and obliges nobody: it stands in the outbox, and who reads that outbox hears
it. Each is told once: the incident's id, and whether it is over, is the idempotency key.
"""

from hashlib import sha256

import msgspec

from gateway.engine.effects import Told
from gateway.engine.inputs import TellIncident
from gateway.engine.limits import ERROR_CHARS_MAX
from gateway.engine.tick import Tick
from outbox.envelope import EVERYONE, Event, IncidentNotice, Signal, Trace, encode_payload
from outbox.errors import IdempotencyConflict, InvalidEvent
from outbox.ids import NodeId
from outbox.kinds import Kind
from outbox.limits import IDEMPOTENCY_KEY_MAX
from outbox.records import Remembered
from outbox.timestamps import parse_rfc3339

INCIDENT = "incident"
ID_MAX = IDEMPOTENCY_KEY_MAX - len("incident::over")
"""Of an incident's id: with what stands around it, it is an idempotency key."""

REPORTED = "reported"
"""Kind of the incidents that somebody else's report found: kept apart from what this node knows by itself."""


def tell_incident(tick: Tick, request: TellIncident, owner_epoch: int) -> Told:
    """Append the signal for every node. Raises InvalidEvent, IdempotencyConflict; then nothing was."""
    notice = request.notice
    key = f"{INCIDENT}:{notice.id}" + (":over" if notice.closed_at is not None else "")
    _check(request)
    known = tick.store.remembered(request.agent, key)
    digest = sha256(msgspec.json.encode([INCIDENT, notice.id, notice.name])).digest()
    if known is not None:
        if known.request_hash != digest:
            raise IdempotencyConflict(f"{notice.id} was told as another class of incident")
        return Told(request.req, known.event_id, duplicate=True)
    signal = Signal(signal=INCIDENT, ref=request.ref, detail=request.detail, incident=notice)
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.SIGNAL,
        source_node_id=tick.identity.node,
        source_agent_id=request.agent,
        created_at=tick.stamp,
        idempotency_key=key,
        trace=Trace(source_owner_epoch=owner_epoch),
        payload=encode_payload(signal),
    )
    tick.emit(event, EVERYONE)
    tick.store.remember(
        Remembered(agent=request.agent, key=key, request_hash=digest, event_id=event.event_id)
    )
    return Told(request.req, event.event_id, duplicate=False)


def _check(request: TellIncident) -> None:
    notice = request.notice
    if not 0 < len(notice.id) <= ID_MAX:
        raise InvalidEvent(f"an incident's id has 1 to {ID_MAX} characters")
    if len(notice.name) > ERROR_CHARS_MAX or len(notice.severity) > ERROR_CHARS_MAX:
        raise InvalidEvent(f"class and severity have at most {ERROR_CHARS_MAX} characters")
    if len(request.detail) > ERROR_CHARS_MAX:
        raise InvalidEvent(f"detail has at most {ERROR_CHARS_MAX} characters")
    for at in (notice.opened_at, notice.closed_at):
        if at is not None:
            parse_rfc3339(at)


def hear_incident(tick: Tick, source: NodeId, signal: Signal) -> None:
    """Open or close it here: one row for an incident's id and the node that tells it."""
    notice = signal.incident
    assert notice is not None
    subject = f"{source}/{notice.id}"[:ERROR_CHARS_MAX]
    if notice.closed_at is not None:
        tick.close_incident(REPORTED, subject)
    else:
        tick.open_incident(REPORTED, subject, _words(notice, signal))


def _words(notice: IncidentNotice, signal: Signal) -> str:
    words = f"{notice.severity} {notice.name}"
    about = f" of {signal.ref}" if signal.ref else ""
    return (
        f"{words}{about}: {signal.detail}"[:ERROR_CHARS_MAX]
        if signal.detail
        else f"{words}{about}"[:ERROR_CHARS_MAX]
    )
