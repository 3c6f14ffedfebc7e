"""An entry of an outbox as a row of the lake.

Nothing is dropped: what looks wrong is kept and flagged, so that a hole in the rows is a hole in the outbox.
"""

import msgspec

from outbox.chain import Entry, leaf
from outbox.envelope import (
    Ack,
    DeadLetter,
    Event,
    Header,
    Signal,
    agrees,
    decode_event,
    decode_header,
    decode_payload,
)
from outbox.errors import InvalidEvent, InvalidId, TooLarge
from outbox.ids import node_id
from outbox.kinds import Kind, known_kind
from outbox.records import Identity, Quarantined
from outbox.timestamps import parse_rfc3339
from spark.limits import COUNT_MAX, CREATED_AHEAD_MS_MAX, CREATED_AT_MIN_MS, TEXT_MAX
from spark.schema import EventRow, Flag, Micros
from spark.tasks import TaskPayload, task_kind


def row_of(entry: Entry, stream: Identity, now_ms: int) -> tuple[EventRow, Quarantined | None]:
    """The row of an entry, and the entry itself when its bytes are no event."""
    try:
        header, event = decode_header(entry.header), decode_event(entry.body)
    except (InvalidEvent, TooLarge) as error:
        return _blank(entry, stream), _quarantined(entry, stream, str(error))
    return _row(entry, stream, header, event, now_ms), None


def _blank(entry: Entry, stream: Identity) -> EventRow:
    return EventRow(
        source_node_id=stream.node,
        epoch=stream.epoch,
        seq=entry.seq,
        digest=_digest(entry),
        bytes=len(entry.body),
        flags=Flag.NOT_AN_EVENT,
    )


def _quarantined(entry: Entry, stream: Identity, reason: str) -> Quarantined:
    return Quarantined(
        source=stream.node,
        epoch=stream.epoch,
        seq=entry.seq,
        reason=_cut(reason) or "",
        header=entry.header,
        body=entry.body,
    )


def _digest(entry: Entry) -> int:
    return int.from_bytes(leaf(entry.header, entry.body)[:8]) >> 1


class _Said(msgspec.Struct, frozen=True):
    """What the payload of an ACK, a dead letter or a task's event says, and what is wrong with it."""

    ref: str | None = None
    status: str | None = None
    outcome: str | None = None
    error: str | None = None
    reason: str | None = None
    attempts: int | None = None
    engaged_at: Micros | None = None
    deliveries: int | None = None
    eta_at: Micros | None = None
    task: TaskPayload = TaskPayload()
    signal: str | None = None
    until_at: Micros | None = None
    is_over: bool | None = None
    flags: tuple[Flag, ...] = ()


def _row(entry: Entry, stream: Identity, header: Header, event: Event, now_ms: int) -> EventRow:
    answer = _answer(event)
    to_nodes, to_flags = _destinations(header)
    flags = (*_doubts(entry, stream, header, event, now_ms), *to_flags, *answer.flags)
    decision = event.trace.route_decision
    return EventRow(
        source_node_id=stream.node,
        epoch=stream.epoch,
        seq=entry.seq,
        event_id=event.event_id,
        kind=_cut(event.kind),
        attempt=_count(event.trace.attempt),
        source_agent_id=event.source_agent_id,
        to_agent_id=event.to_agent_id,
        to_nodes=to_nodes,
        corr_id=event.corr_id,
        root_id=answer.ref or event.event_id,
        thread_id=event.thread_id,
        created_at=_micros(event.created_at),
        expires_at=_micros(event.expires_at),
        priority=event.priority,
        type=event.type,
        status=answer.status,
        outcome=answer.outcome,
        error=answer.error,
        reason=answer.reason,
        attempts=answer.attempts,
        engaged_at=answer.engaged_at,
        deliveries=answer.deliveries,
        owner_node_id=_cut(decision.owner_node_id) if decision else None,
        hops=_count(event.trace.hops),
        eta_at=answer.eta_at,
        capability_id=_cut(answer.task.capability_id),
        version=_cut(answer.task.version),
        skill_version=_cut(answer.task.skill_version),
        accept_within_ms=_bound(answer.task.accept_within_ms),
        complete_within_ms=_bound(answer.task.complete_within_ms),
        error_class=_cut(answer.task.error_class),
        signal=answer.signal,
        until_at=answer.until_at,
        is_over=answer.is_over,
        digest=_digest(entry),
        bytes=len(entry.body),
        flags=",".join(dict.fromkeys(flags)) or None,
    )


def _doubts(entry: Entry, stream: Identity, header: Header, event: Event, now_ms: int) -> list[Flag]:
    created_ms = parse_rfc3339(event.created_at)
    checks = (
        (Flag.HEADER_DISAGREES, not agrees(header, event, entry.body)),
        (Flag.FOREIGN_SOURCE, event.source_node_id != stream.node),
        (Flag.UNKNOWN_KIND, known_kind(event.kind) is None and task_kind(event.kind) is None),
        (Flag.CREATED_AT, not CREATED_AT_MIN_MS <= created_ms <= now_ms + CREATED_AHEAD_MS_MAX),
        (Flag.OUT_OF_RANGE, event.trace.attempt > COUNT_MAX),
    )
    return [flag for flag, wrong in checks if wrong]


def _destinations(header: Header) -> tuple[str, tuple[Flag, ...]]:
    if isinstance(header.to, str):
        return (header.to, ()) if header.to == "*" else ("", (Flag.HEADER_DISAGREES,))
    try:
        return ",".join(node_id(node) for node in header.to), ()
    except InvalidId:
        return "", (Flag.HEADER_DISAGREES,)


def _answer(event: Event) -> _Said:
    if task_kind(event.kind) is not None:
        return _of_task(event)
    try:
        match known_kind(event.kind):
            case Kind.ACK:
                answer = _of_ack(event, decode_payload(event, Ack))
            case Kind.SIGNAL:
                return _of_signal(decode_payload(event, Signal))
            case Kind.DEAD_LETTER:
                answer = _of_dead_letter(decode_payload(event, DeadLetter))
            case _:
                return _Said()
    except InvalidEvent:
        return _Said(flags=(Flag.BAD_PAYLOAD,))
    return answer if answer.ref == event.corr_id else _Said(flags=(Flag.BAD_PAYLOAD,))


class _Promise(msgspec.Struct, frozen=True, rename="camel"):
    """When the work will be done, as others than this program say it too."""

    eta_seconds: int | None = None


def _of_ack(event: Event, ack: Ack) -> _Said:
    return _Said(
        ref=ack.ref,
        status=ack.status,
        outcome=ack.outcome,
        error=_cut(ack.error),
        engaged_at=_micros(ack.engaged_at),
        deliveries=_count(ack.deliveries),
        eta_at=_promised(event, ack),
        flags=() if 0 <= ack.deliveries <= COUNT_MAX else (Flag.OUT_OF_RANGE,),
    )


def _promised(event: Event, ack: Ack) -> Micros | None:
    if ack.eta_at is not None:
        return _micros(ack.eta_at)
    promise = decode_payload(event, _Promise)
    if promise.eta_seconds is None:
        return None
    return Micros((parse_rfc3339(event.created_at) + _count(promise.eta_seconds) * 1000) * 1000)


def _of_task(event: Event) -> _Said:
    """A task's event is judged by its kind even when its payload cannot be read: the step was taken."""
    try:
        task = decode_payload(event, TaskPayload)
        return _Said(eta_at=_micros(task.eta_at), error=_cut(task.error), task=task)
    except InvalidEvent:
        return _Said(flags=(Flag.UNREADABLE_TASK,))


def _of_signal(signal: Signal) -> _Said:
    """Which one it is, and what it announces."""
    notice = signal.maintenance
    if notice is None:
        return _Said(signal=_cut(signal.signal))
    return _Said(
        signal=_cut(signal.signal),
        reason=_cut(notice.reason) or None,
        until_at=_micros(notice.until),
        is_over=notice.over,
    )


def _of_dead_letter(letter: DeadLetter) -> _Said:
    return _Said(
        ref=letter.ref,
        error=_cut(letter.last_error),
        reason=_cut(letter.reason),
        attempts=_count(letter.attempts),
        flags=() if 0 <= letter.attempts <= COUNT_MAX else (Flag.OUT_OF_RANGE,),
    )


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:TEXT_MAX]


def _count(number: int) -> int:
    return max(0, min(number, COUNT_MAX))


def _bound(ms: int | None) -> int | None:
    return None if ms is None else _count(ms)


def _micros(text: str | None) -> Micros | None:
    return None if text is None else Micros(parse_rfc3339(text) * 1000)
