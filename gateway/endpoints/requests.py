"""Bodies and frames of clients as inputs of the engine: the same verbs over HTTP and WebSocket."""

from typing import Literal

import msgspec

from gateway.endpoints.bodies import EnvelopeBody, ExtendBody, IncidentBody, MessageBody, text_payload
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.frames import ExtendFrame
from gateway.engine.inputs import Extend, Nack, Reply, Send, Settle, TellIncident
from outbox.blobref import BlobRef
from outbox.envelope import IncidentNotice
from outbox.ids import AgentId, event_id
from outbox.kinds import Outcome


def send_of(req: int, agent: AgentId, body: MessageBody, *, traceparent: str | None = None) -> Send:
    """``traceparent`` is that of the whole request. Raises BadRequest unless the body has an envelope or a
    text; InvalidId.
    """
    if (body.envelope is None) == (body.text is None):
        raise BadRequest("a message has either an envelope or a text")
    if body.envelope and (body.envelope.payload is msgspec.UNSET) == (body.envelope.payload_ref is None):
        raise BadRequest("an envelope has either a payload or a payloadRef")
    envelope = body.envelope or EnvelopeBody(payload=text_payload(body.text or ""))
    return Send(
        req=req,
        agent=agent,
        to=body.to,
        payload=_payload(envelope.payload),
        payload_ref=envelope.payload_ref,
        type=envelope.type,
        schema=envelope.schema,
        traceparent=envelope.traceparent if envelope.traceparent is not None else traceparent,
        thread_id=envelope.thread,
        idempotency_key=envelope.id,
        expires_in_ms=envelope.expires_in_ms,
        priority=envelope.priority,
        cause=event_id(envelope.cause) if envelope.cause is not None else None,
        wait=envelope.wait,
    )


def incident_of(req: int, agent: AgentId, body: IncidentBody) -> TellIncident:
    """Raises InvalidId."""
    notice = IncidentNotice(
        id=body.id,
        name=body.name,
        severity=body.severity,
        opened_at=body.opened_at,
        closed_at=body.closed_at,
    )
    ref = event_id(body.ref) if body.ref is not None else None
    return TellIncident(req=req, agent=agent, notice=notice, ref=ref, detail=body.detail)


def reply_of(
    req: int,
    agent: AgentId,
    event: str,
    payload: msgspec.Raw | msgspec.UnsetType,
    text: str | None,
    *,
    lease_id: str | None,
    idempotency_key: str | None,
    type_: str | None,
    schema: str | None = None,
    traceparent: str | None = None,
    payload_ref: BlobRef | None = None,
) -> Reply:
    """Raises BadRequest unless there is a payload, a text or a blob; InvalidId."""
    if (payload is not msgspec.UNSET) + (text is not None) + (payload_ref is not None) != 1:
        raise BadRequest("a reply has a payload, a text or a payloadRef")
    return Reply(
        req=req,
        agent=agent,
        event_id=event_id(event),
        payload=text_payload(text) if text is not None else _payload(payload),
        payload_ref=payload_ref,
        lease_id=lease_id,
        type=type_,
        schema=schema,
        traceparent=traceparent,
        idempotency_key=idempotency_key,
    )


def _payload(given: msgspec.Raw | msgspec.UnsetType) -> msgspec.Raw:
    return msgspec.Raw(b"null") if isinstance(given, msgspec.UnsetType) else given


def settle_of(
    req: int,
    agent: AgentId,
    event: str,
    *,
    lease_id: str | None,
    outcome: Literal["ok", "failed"],
    error: str | None,
) -> Settle:
    """Raises InvalidId."""
    return Settle(
        req=req,
        agent=agent,
        event_id=event_id(event),
        lease_id=lease_id,
        outcome=Outcome(outcome),
        error=error,
    )


def nack_of(req: int, agent: AgentId, event: str, lease_id: str, delay_ms: int) -> Nack:
    """Raises InvalidId."""
    return Nack(req=req, agent=agent, event_id=event_id(event), lease_id=lease_id, delay_ms=delay_ms)


def extend_of(req: int, agent: AgentId, event: str, given: ExtendBody | ExtendFrame) -> Extend:
    """Raises InvalidId."""
    return Extend(
        req=req,
        agent=agent,
        event_id=event_id(event),
        lease_id=given.lease_id,
        lease_ms=given.lease_ms,
        eta_at=given.eta_at,
        plan_summary=given.plan_summary,
    )
