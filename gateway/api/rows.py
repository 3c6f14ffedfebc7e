"""Journal rows as JSON records of the local listener. Times are milliseconds since 1970."""

import msgspec

from outbox.blobref import BlobRef
from outbox.chain import Entry
from outbox.envelope import Event, Header, decode_event, decode_header
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.kinds import Outcome
from outbox.records import Delivery, Incident, Received, TurnState
from outbox.traceparent import readable_traceparent

WAITING_FOR_BLOB = "waiting_for_blob"

_FROM_TO = {"sender": "from", "recipient": "to"}


def _name(field: str) -> str:
    head, *rest = field.split("_")
    return _FROM_TO.get(field) or head + "".join(part.capitalize() for part in rest)


class InboxRow(msgspec.Struct, frozen=True, kw_only=True, rename=_name, omit_defaults=True):
    """One event of an agent's inbox, peeked at."""

    event_id: EventId
    kind: str
    sender: AgentId | None
    from_node: NodeId
    recipient: AgentId
    thread_id: str | None = None
    corr_id: EventId | None = None
    type: str | None = None
    schema: str | None = None
    traceparent: str | None = None
    priority: int
    created_at: str
    accepted_at_ms: int
    expires_at_ms: int
    state: str
    """With what a turn waits for that nobody can be dealt yet: ``waiting_for_blob``."""
    delivery_count: int = 0
    outcome: Outcome | None = None
    error: str | None = None
    payload: msgspec.Raw
    payload_ref: BlobRef | None = None
    """The blob that stands in place of a payload."""


class InboxAnswer(msgspec.Struct, frozen=True):
    """Rows in the order of their acceptance."""

    items: list[InboxRow]
    more: bool
    """There is more than was shown: newer rows, or without ``after`` older ones."""


class DeliveryRow(msgspec.Struct, frozen=True, kw_only=True, rename=_name, omit_defaults=True):
    """One obligation of this node."""

    event_id: EventId
    kind: str
    sender: AgentId
    recipient: AgentId
    node: NodeId | None
    state: str
    """With what an unanswered one waits for: ``waiting_for_link``, ``_owner``, ``_room``."""
    attempt: int
    seq: Seq
    thread_id: str
    created_at_ms: int
    expires_at_ms: int
    next_at_ms: int | None = None
    accepted_at_ms: int | None = None
    engaged_at_ms: int | None = None
    processed_at_ms: int | None = None
    replied_at_ms: int | None = None
    dead_at_ms: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    eta_at_ms: int | None = None
    """When its agent expects to be done, by its own clock."""
    plan_summary: str | None = None


class IncidentRow(msgspec.Struct, frozen=True, kw_only=True, rename=_name, omit_defaults=True):
    """One incident."""

    kind: str
    subject: str
    opened_at_ms: int
    closed_at_ms: int | None = None
    detail: str


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True, rename=_name, omit_defaults=True):
    """One entry of the own outbox, decoded."""

    seq: Seq
    header: Header
    event: msgspec.Raw


class OutboxAnswer(msgspec.Struct, frozen=True):
    """A piece of the own outbox."""

    entries: list[OutboxRow]
    next: Seq
    """Give it as ``after`` to read on."""
    head: Seq


def inbox_row(row: Received, *, blob_missing: bool = False) -> InboxRow:
    """A ledger row with what its event says."""
    event = readable_event(row.body)
    return InboxRow(
        event_id=row.event_id,
        kind=row.kind,
        sender=event.source_agent_id,
        from_node=row.source,
        recipient=row.to_agent,
        thread_id=event.thread_id,
        corr_id=event.corr_id,
        type=event.type,
        schema=event.schema,
        traceparent=readable_traceparent(event.trace.traceparent),
        priority=row.priority,
        created_at=event.created_at,
        accepted_at_ms=row.accepted_at_ms,
        expires_at_ms=row.expires_at_ms,
        state=turn_state(row, blob_missing=blob_missing),
        delivery_count=row.delivery_count,
        outcome=row.outcome,
        error=row.error,
        payload=event.payload,
        payload_ref=event.payload_ref,
    )


def turn_state(row: Received, *, blob_missing: bool) -> str:
    """The state to show: what is queued and names a blob that is not here waits for that."""
    return WAITING_FOR_BLOB if blob_missing and row.state is TurnState.QUEUED else row.state


def delivery_row(row: Delivery, state: str) -> DeliveryRow:
    """A delivery, in the state to show."""
    return DeliveryRow(
        event_id=row.event_id,
        kind=row.kind,
        sender=row.from_agent,
        recipient=row.to_agent,
        node=row.node,
        state=state,
        attempt=row.attempt,
        seq=row.seq,
        thread_id=row.thread_id,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
        next_at_ms=row.next_at_ms,
        accepted_at_ms=row.accepted_at_ms,
        engaged_at_ms=row.engaged_at_ms,
        processed_at_ms=row.processed_at_ms,
        replied_at_ms=row.replied_at_ms,
        dead_at_ms=row.dead_at_ms,
        outcome=row.outcome,
        error=row.error,
        eta_at_ms=row.eta_at_ms,
        plan_summary=row.plan_summary,
    )


def incident_row(row: Incident) -> IncidentRow:
    """An incident."""
    return IncidentRow(
        kind=row.kind,
        subject=row.subject,
        opened_at_ms=row.opened_at_ms,
        closed_at_ms=row.closed_at_ms,
        detail=row.detail,
    )


def outbox_row(entry: Entry) -> OutboxRow:
    """An own entry; own entries are always events."""
    return OutboxRow(
        seq=entry.seq, header=decode_header(entry.header), event=msgspec.Raw(readable(entry.body).encode())
    )


def readable(body: bytes) -> str:
    """An event's JSON as text: other nodes' bytes may hold what is no UTF-8 inside a payload."""
    return body.decode("utf-8", errors="replace")


def readable_event(body: bytes) -> Event:
    """The event, with a payload that any JSON reader takes; one that none takes is shown as null."""
    event = decode_event(readable(body).encode())
    try:
        msgspec.json.decode(event.payload)
    except (msgspec.MsgspecError, RecursionError):
        return msgspec.structs.replace(event, payload=msgspec.Raw(b"null"))
    return event
