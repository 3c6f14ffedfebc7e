"""What clients of the local listener send: bodies and parameters, parsed once into records. Core.

Unknown fields and parameters are refused: a client that misspells one must hear of it.
"""

from typing import Annotated, Literal, TypeVar

import msgspec

from gateway.endpoints.errors import BadRequest
from gateway.endpoints.limits import (
    ENQUEUE_BATCH_MAX,
    ERROR_CHARS_MAX,
    GRACE_MS_DEFAULT,
    INVITE_TTL_S_DEFAULT,
    INVITE_TTL_S_MAX,
    REASON_CHARS_MAX,
    ROWS_DEFAULT,
    ROWS_MAX,
    SESSION_CHARS_MAX,
)
from gateway.engine.limits import EXPIRES_IN_MS_MAX
from outbox.blobref import BlobRef
from outbox.limits import JSON_DEPTH_MAX, NAME_CHARS_MAX
from outbox.nesting import is_deeper

_Record = TypeVar("_Record")

Limit = Annotated[int, msgspec.Meta(ge=1, le=ROWS_MAX)]
ErrorText = Annotated[str, msgspec.Meta(max_length=ERROR_CHARS_MAX)]
LeaseText = Annotated[str, msgspec.Meta(max_length=128)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=EXPIRES_IN_MS_MAX)]


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of all bodies. ``agent`` is needed of an admin only; an agent is who its token says."""


class EnvelopeBody(_Body, frozen=True):
    """What is sent; ``id`` is the client's idempotency key."""

    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    payload_ref: BlobRef | None = None
    """Instead of a payload: a blob that was uploaded."""
    id: str | None = None
    type: str | None = None
    schema: str | None = None
    """Name of the schema that the payload follows."""
    traceparent: str | None = None
    """W3C Trace Context; goes before the header of that name."""
    thread: str | None = None
    priority: int = 2
    expires_in_ms: Annotated[int, msgspec.Meta(ge=1, le=EXPIRES_IN_MS_MAX)] | None = None
    cause: str | None = None
    """The event of the agent's inbox that it answers with this."""
    wait: bool = False
    """For an agent without an owner: wait until it has one."""


class MessageBody(_Body, frozen=True):
    """One message: an envelope, or just a text."""

    to: str
    envelope: EnvelopeBody | None = None
    text: str | None = None


class EnqueueBody(MessageBody, frozen=True):
    """``POST /v1/enqueue`` of one message."""

    agent: str | None = None


class EnqueueBatchBody(_Body, frozen=True):
    """``POST /v1/enqueue`` of many messages, each done or refused by itself."""

    envs: Annotated[list[MessageBody], msgspec.Meta(min_length=1, max_length=ENQUEUE_BATCH_MAX)]
    agent: str | None = None


class IncidentBody(_Body, frozen=True):
    """``POST /v1/incidents``: a report found it, or found that it is over."""

    id: str
    name: str = msgspec.field(name="class")
    severity: Literal["critical", "major", "minor"]
    opened_at: str | None = None
    closed_at: str | None = None
    ref: str | None = None
    detail: ErrorText = ""
    agent: str | None = None


class ReplyBody(_Body, frozen=True):
    """``POST /v1/reply``: a payload, just a text, or a blob."""

    event_id: str
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | None = None
    payload_ref: BlobRef | None = None
    lease_id: LeaseText | None = None
    id: str | None = None
    type: str | None = None
    schema: str | None = None
    traceparent: str | None = None
    agent: str | None = None


class AckBody(_Body, frozen=True):
    """``POST /v1/ack``: a turn is done."""

    event_id: str
    lease_id: LeaseText | None = None
    outcome: Literal["ok", "failed"] = "ok"
    error: ErrorText | None = None
    agent: str | None = None


class NackBody(_Body, frozen=True):
    """``POST /v1/nack``: a turn is given back."""

    event_id: str
    lease_id: LeaseText
    delay_ms: Milliseconds = 0
    agent: str | None = None


class ExtendBody(_Body, frozen=True):
    """``POST /v1/extend``: a turn needs so much more time."""

    event_id: str
    lease_id: LeaseText
    lease_ms: Annotated[int, msgspec.Meta(ge=1, le=EXPIRES_IN_MS_MAX)]
    eta_at: str | None = None
    """When the agent expects to be done; its sender is told."""
    plan_summary: str | None = None
    """What the agent is about to do; its sender is told."""
    agent: str | None = None


class AddAgentBody(_Body, frozen=True):
    """``POST /v1/agents``."""

    name: str
    fallback: tuple[str, ...] = ()
    """Nodes that may answer for it when this one is away for longer than the grace."""
    grace_ms: Milliseconds = GRACE_MS_DEFAULT
    groups: tuple[str, ...] = ()
    fallback_of: str | None = None
    """The node that it lives on: this one only stands in for it."""


class SetAgentBody(_Body, frozen=True):
    """``PATCH /v1/agents/{name}``: what is absent stays as it is."""

    fallback: tuple[str, ...] | None = None
    grace_ms: Milliseconds | None = None
    groups: tuple[str, ...] | None = None


class RedriveBody(_Body, frozen=True):
    """``POST /v1/dead/{eventId}/redrive``."""

    expires_in_ms: Annotated[int, msgspec.Meta(ge=1, le=EXPIRES_IN_MS_MAX)] | None = None


class PruneBody(_Body, frozen=True):
    """``POST /v1/dead/prune``: these events, or all that were given up so long ago."""

    event_ids: Annotated[tuple[str, ...], msgspec.Meta(max_length=ROWS_MAX)] = ()
    older_than_ms: Milliseconds = 0


class CloseIncidentsBody(_Body, frozen=True):
    """``POST /v1/incidents/close``: what is given narrows, and one of them is given."""

    about: Annotated[tuple[str, ...], msgspec.Meta(max_length=ROWS_MAX)] = ()
    kind: Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)] | None = None
    older_than_ms: Milliseconds | None = None


class PruneOutboxBody(_Body, frozen=True):
    """``POST /v1/outbox/prune``."""

    force: bool = False
    """Also what other nodes have not read."""


class MaintenanceBody(_Body, frozen=True):
    """``POST /v1/maintenance``."""

    until: str | None = None
    """RFC 3339; without it: until it is over."""
    reason: ErrorText = ""
    over: bool = False


class InviteBody(_Body, frozen=True):
    """``POST /v1/invites``."""

    node: str | None = None
    ttl_seconds: Annotated[int, msgspec.Meta(ge=1, le=INVITE_TTL_S_MAX)] = INVITE_TTL_S_DEFAULT
    key_thumbprint: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{43}\Z")] | None = None
    reads_all: bool = False


class RevokeBody(_Body, frozen=True):
    """``POST /v1/nodes/{node}/revoke``."""

    ban: bool = False
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS_MAX)] = ""


class NoQuery(_Body, frozen=True):
    """Of a route without parameters."""


class AgentQuery(_Body, frozen=True):
    """Of ``WS /v1/watch``."""

    agent: str | None = None


class SubscribeQuery(_Body, frozen=True):
    """Of ``WS /v1/subscribe``."""

    stream: str
    session: Annotated[str, msgspec.Meta(pattern=rf"^[!-~]{{1,{SESSION_CHARS_MAX}}}\Z")] | None = None
    lines: bool = False


class InboxQuery(_Body, frozen=True):
    """Of ``GET /v1/inbox``."""

    agent: str | None = None
    all: bool = False
    limit: Limit = ROWS_DEFAULT
    after: str | None = None
    """An event id: only what came after it."""


class DeadQuery(_Body, frozen=True):
    """Of ``GET /v1/dead``."""

    limit: Limit = ROWS_DEFAULT
    before: str | None = None
    """An event id of the list: only what comes after it there, that is, older ones."""
    all: bool = False
    """Those too that were redriven or pruned."""


class DeliveriesQuery(_Body, frozen=True):
    """Of ``GET /v1/deliveries``."""

    state: str | None = None
    limit: Limit = ROWS_DEFAULT


class IncidentsQuery(_Body, frozen=True):
    """Of ``GET /v1/incidents``."""

    all: bool = False


class OutboxQuery(_Body, frozen=True):
    """Of ``GET /v1/outbox``."""

    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    limit: Limit = ROWS_DEFAULT


def decode(raw: bytes, record: type[_Record]) -> _Record:
    """Read one JSON document, whose free parts any reader will be able to read. Raises BadRequest."""
    try:
        raw.decode()
        check_free_parts(raw)
        return msgspec.json.decode(raw, type=record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"not the JSON that was expected: {error}") from None


class _EnqueueShape(msgspec.Struct, frozen=True):
    envs: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def decode_enqueue(raw: bytes) -> EnqueueBody | EnqueueBatchBody:
    """Read the body of ``POST /v1/enqueue``, of one message or many. Raises BadRequest."""
    many = decode(raw, _EnqueueShape).envs is not msgspec.UNSET
    return decode(raw, EnqueueBatchBody) if many else decode(raw, EnqueueBody)


def check_free_parts(raw: bytes) -> None:
    """What stays raw is parsed here once: neither depth nor half a surrogate must travel.

    Raises BadRequest, and what msgspec raises.
    """
    if is_deeper(raw, JSON_DEPTH_MAX):
        raise BadRequest(f"JSON nested deeper than {JSON_DEPTH_MAX}")
    msgspec.json.decode(raw)


def text_payload(text: str) -> msgspec.Raw:
    """The payload of a message that is just a text: ``{"text": …}``."""
    return msgspec.Raw(msgspec.json.encode({"text": text}))
