"""An entry of an outbox as a row of the lake.

Nothing is dropped: what looks wrong is kept and flagged, so that a hole in the rows is a hole in the outbox.
"""

import msgspec

from outbox.chain import Entry
from outbox.envelope import (
    Ack,
    DeadLetter,
    Event,
    Header,
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


class _Answer(msgspec.Struct, frozen=True):
    """What an ACK or a dead letter says, and what is wrong with it."""

    ref: str | None = None
    status: str | None = None
    outcome: str | None = None
    error: str | None = None
    reason: str | None = None
    attempts: int | None = None
    engaged_at: Micros | None = None
    deliveries: int | None = None
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
        bytes=len(entry.body),
        flags=",".join(dict.fromkeys(flags)) or None,
    )


def _doubts(entry: Entry, stream: Identity, header: Header, event: Event, now_ms: int) -> list[Flag]:
    created_ms = parse_rfc3339(event.created_at)
    checks = (
        (Flag.HEADER_DISAGREES, not agrees(header, event, entry.body)),
        (Flag.FOREIGN_SOURCE, event.source_node_id != stream.node),
        (Flag.UNKNOWN_KIND, known_kind(event.kind) is None),
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


def _answer(event: Event) -> _Answer:
    try:
        match known_kind(event.kind):
            case Kind.ACK:
                answer = _of_ack(decode_payload(event, Ack))
            case Kind.DEAD_LETTER:
                answer = _of_dead_letter(decode_payload(event, DeadLetter))
            case _:
                return _Answer()
    except InvalidEvent:
        return _Answer(flags=(Flag.BAD_PAYLOAD,))
    return answer if answer.ref == event.corr_id else _Answer(flags=(Flag.BAD_PAYLOAD,))


def _of_ack(ack: Ack) -> _Answer:
    return _Answer(
        ref=ack.ref,
        status=ack.status,
        outcome=ack.outcome,
        error=_cut(ack.error),
        engaged_at=_micros(ack.engaged_at),
        deliveries=_count(ack.deliveries),
        flags=() if 0 <= ack.deliveries <= COUNT_MAX else (Flag.OUT_OF_RANGE,),
    )


def _of_dead_letter(letter: DeadLetter) -> _Answer:
    return _Answer(
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


def _micros(text: str | None) -> Micros | None:
    return None if text is None else Micros(parse_rfc3339(text) * 1000)
