"""The envelope: one event as JSON, camelCase on the wire, and its header.

An entry of an outbox is a *header* (what a relay needs to route) and a *body* (the event's bytes, stored and
forwarded verbatim). A reader checks that the two agree.

Source: envelope table of ``docs/PROTOCOL.md``. ``v`` is 1 since 2026-11.
"""

from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from outbox.blobref import BlobRef, check_ref
from outbox.errors import InvalidEvent, InvalidId, TooLarge
from outbox.ids import AgentId, EventId, NodeId, agent_id, event_id, node_id
from outbox.kinds import RULES, AckStatus, Outcome
from outbox.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    HEADERS_REMEMBERED,
    PAYLOAD_BYTES_MAX,
    RECIPIENTS_MAX,
    SCHEMA_MAX,
    THREAD_ID_MAX,
    TYPE_MAX,
)
from outbox.places import EpochName, Written
from outbox.timestamps import parse_rfc3339

_Record = TypeVar("_Record")

EVERYONE = "*"
"""Destination of a broadcast."""


class RouteDecision(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Why the sender sent it there."""

    owner_node_id: NodeId
    owner_epoch: int
    reason: str


class Trace(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """What a reader needs to judge an attempt and to follow it."""

    attempt: Annotated[int, Meta(ge=1)] = 1
    first_position: tuple[EpochName, Written] | None = None
    """Where attempt 1 stands; absent on attempt 1 itself."""
    source_owner_epoch: int = 0
    route_decision: RouteDecision | None = None
    policy_version: int = 0
    hops: Annotated[int, Meta(ge=0)] = 0
    """Rises by one when an event answers another."""
    traceparent: str | None = None
    """W3C Trace Context, as its author's tracing system wrote it; from a peer it may be any text."""


class Event(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One event as every gateway sees it. Times are RFC 3339 text of the emitter's clock."""

    v: Annotated[int, Meta(ge=1)] = 1
    event_id: EventId
    kind: str
    source_node_id: NodeId
    created_at: str
    source_agent_id: AgentId | None = None
    to_agent_id: AgentId | None = None
    to_agents: Annotated[tuple[AgentId, ...], Meta(max_length=RECIPIENTS_MAX)] = ()
    """Of an event to several, without ``to_agent_id``; neither of both: to all that live where it goes."""
    corr_id: EventId | None = None
    thread_id: Annotated[str, Meta(max_length=THREAD_ID_MAX)] | None = None
    expires_at: str | None = None
    priority: Annotated[int, Meta(ge=0, le=4)] = 2
    """0 critical … 2 normal … 4 low."""
    type: Annotated[str, Meta(max_length=TYPE_MAX)] | None = None
    schema: Annotated[str, Meta(max_length=SCHEMA_MAX)] | None = None
    """Name of the schema that the payload is said to follow; from a peer it may be any text."""
    idempotency_key: str | None = None
    redrive_of: EventId | None = None
    """The dead letter that an operator sent again as this event."""
    trace: Trace = Trace()
    payload: msgspec.Raw = msgspec.Raw(b"null")
    payload_ref: BlobRef | None = None
    """Instead of a payload: a blob that the emitter's gateway serves."""


class Header(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """What every reader gets of every entry, whether or not the body travels."""

    event_id: EventId
    kind: str
    corr_id: EventId | None = None
    to: tuple[NodeId, ...] | str = ()
    """Destination nodes, or ``"*"``; empty for an event that nobody must act on."""
    attempt: int = 1
    size: int
    """Bytes of the body."""


class Ack(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Payload of kind ``ack``."""

    ref: EventId
    status: AckStatus
    outcome: Outcome = Outcome.OK
    error: str | None = None
    engaged_at: str | None = None
    """On ``processed``: when the agent was handed the event."""
    deliveries: int = 0
    """On ``processed``: how many times it was handed over."""
    eta_at: str | None = None
    """On ``accepted``, said by an agent that works on it: when it expects to be done."""
    plan_summary: str | None = None
    """As ``eta_at``: what it is about to do."""

    @property
    def promises(self) -> bool:
        """Whether an agent says something by it; a gateway's own ``accepted`` says that the event is here."""
        return self.eta_at is not None or self.plan_summary is not None


class DeadLetter(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Payload of kind ``dead_letter``."""

    ref: EventId
    reason: str
    attempts: int
    last_error: str | None = None


class Signal(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Payload of kind ``signal``: a hint from gateway to gateway."""

    signal: str
    """``incident``, ``status_request``, ``status_unknown``, ``stream_epoch`` …"""
    ref: EventId | None = None
    detail: str = ""
    incident: "IncidentNotice | None" = None
    """Of ``incident``."""
    maintenance: "MaintenanceNotice | None" = None
    """Of ``maintenance``."""


class MaintenanceNotice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A node will be away on purpose, or is back."""

    until: str | None = None
    reason: str = ""
    over: bool = False


class IncidentNotice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What a report found, told to the mesh by the agent that watches over it."""

    id: str
    """The same for every report that finds it."""
    name: str = msgspec.field(name="class")
    severity: str
    opened_at: str | None = None
    closed_at: str | None = None
    """It is over, or it turned out that there was none."""


_ANSWERS = frozenset(kind for kind, rule in RULES.items() if rule.answers)
_event = msgspec.json.Decoder(Event)
_header = msgspec.json.Decoder(Header)
_encode = msgspec.json.Encoder().encode


def encode_event(event: Event) -> bytes:
    """The body of an entry. Raises TooLarge when payload or body are above their limits."""
    if len(memoryview(event.payload)) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"the payload has more than {PAYLOAD_BYTES_MAX} bytes",
            hint="send it as a blob: gateway send --file",
        )
    body = _encode(event)
    if len(body) > BODY_BYTES_MAX:
        raise TooLarge(f"the event has more than {BODY_BYTES_MAX} bytes")
    return body


def encode_payload(record: msgspec.Struct) -> msgspec.Raw:
    """A payload record as the raw JSON that goes into an event."""
    return msgspec.Raw(_encode(record))


def decode_event(body: bytes) -> Event:
    """Read and check an event; unknown fields are ignored here and kept in the bytes.

    Raises InvalidEvent with what is wrong, TooLarge.
    """
    if len(body) > BODY_BYTES_MAX:
        raise TooLarge(f"the event has more than {BODY_BYTES_MAX} bytes")
    try:
        event = _event.decode(body)
        _check(event)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidId) as error:
        raise InvalidEvent(f"not an event: {error}") from None
    return event


def _check(event: Event) -> None:
    """What the types do not say. Bounds of numbers and lengths are theirs."""
    event_id(event.event_id)
    node_id(event.source_node_id)
    if event.source_agent_id is not None:
        agent_id(event.source_agent_id)
    if event.to_agent_id is not None:
        agent_id(event.to_agent_id)
    if event.corr_id is not None:
        event_id(event.corr_id)
    elif event.kind in _ANSWERS:
        raise InvalidEvent(f"kind {event.kind} needs corrId")
    parse_rfc3339(event.created_at)
    if event.expires_at is not None:
        parse_rfc3339(event.expires_at)
    if event.redrive_of is not None:
        event_id(event.redrive_of)
    if event.to_agents:
        _check_several(event)
    if event.payload_ref is not None:
        check_ref(event.payload_ref)
        if bytes(event.payload) != b"null":
            raise InvalidEvent("payload stands beside payloadRef")


def _check_several(event: Event) -> None:
    if event.to_agent_id is not None:
        raise InvalidEvent("toAgents stands beside toAgentId")
    for agent in event.to_agents:
        agent_id(agent)


def encode_header(header: Header) -> bytes:
    """The header bytes of an entry."""
    return _encode(header)


@lru_cache(HEADERS_REMEMBERED)
def decode_header(raw: bytes) -> Header:
    """Read a header. Raises InvalidEvent."""
    if len(raw) > HEADER_BYTES_MAX:
        raise InvalidEvent("the header is too long")
    try:
        return _header.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(f"not a header: {error}") from None


def header_of(event: Event, to: tuple[NodeId, ...] | str, size: int) -> Header:
    """The header that belongs to an event of ``size`` bytes sent to these nodes."""
    return Header(
        event_id=event.event_id,
        kind=event.kind,
        corr_id=event.corr_id,
        to=to,
        attempt=event.trace.attempt,
        size=size,
    )


def agrees(header: Header, event: Event, body: bytes) -> bool:
    """Whether a header tells the truth about its body; a lying entry is quarantined."""
    return header == header_of(event, header.to, len(body))


def decode_payload(event: Event, record: type[_Record]) -> _Record:
    """The payload of an event as one of the payload records. Raises InvalidEvent."""
    try:
        return msgspec.json.decode(event.payload, type=record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(f"payload of {event.kind}: {error}") from None
