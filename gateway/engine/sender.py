"""Messages and replies leave: one event in the outbox and one obligation beside it.

What becomes of the obligation is in ``deliveries``.
"""

from hashlib import sha256

import msgspec

from gateway.engine.attempts import first_check_ms
from gateway.engine.effects import Sent
from gateway.engine.inputs import Reply, Send
from gateway.engine.letters import bury
from gateway.engine.limits import EXPIRES_IN_MS_MAX
from gateway.engine.tick import Tick
from gateway.routing import Route, resolve
from outbox.delivery import Input, standing
from outbox.envelope import Event, Trace
from outbox.errors import HopLimit, IdempotencyConflict, InvalidEvent
from outbox.ids import AgentId
from outbox.kinds import Kind
from outbox.limits import HOPS_MAX, IDEMPOTENCY_KEY_MAX, THREAD_ID_MAX, TYPE_MAX
from outbox.records import Delivery, DeliveryState, Remembered
from outbox.timestamps import parse_rfc3339, rfc3339


def send(tick: Tick, request: Send, owner_epoch: int) -> Sent:
    """Append a message of an agent that this node owns since ``owner_epoch``.

    Raises CallerError branches; then nothing was appended.
    """
    _check_labels(request)
    _check_terms(request)
    digest = _digest(
        request.to,
        request.payload,
        request.type,
        request.thread_id,
        request.expires_in_ms,
        request.priority,
    )
    known = _remembered(tick, request.agent, request.idempotency_key, digest)
    if known is not None:
        return _again(tick, request.req, known)
    route = resolve(tick.view, request.to, tick.absences.away(tick.now.mono_ms))
    event_id = tick.entropy.event_id(tick.now.wall_ms)
    lifetime_ms = request.expires_in_ms or tick.policy.expires_in_ms
    event = Event(
        event_id=event_id,
        kind=Kind.MESSAGE,
        source_node_id=tick.identity.node,
        source_agent_id=request.agent,
        to_agent_id=route.agent,
        thread_id=request.thread_id or event_id,
        created_at=tick.stamp(),
        expires_at=rfc3339(tick.now.wall_ms + lifetime_ms),
        priority=request.priority,
        type=request.type,
        idempotency_key=request.idempotency_key,
        trace=Trace(source_owner_epoch=owner_epoch, route_decision=route.decision()),
        payload=request.payload,
    )
    return _emit(tick, request.req, event, route, digest)


def reply(tick: Tick, request: Reply, question: Event, owner_epoch: int) -> Sent:
    """Append the answer to an event of the agent's inbox. Raises CallerError branches; then nothing was."""
    _check_labels(request)
    assert question.source_agent_id is not None, "without one it does not reach an inbox"
    hops = question.trace.hops + 1
    if hops > HOPS_MAX:
        raise HopLimit(f"more than {HOPS_MAX} answers in a row", hint="start a new message instead")
    digest = _digest(question.event_id, request.payload, request.type)
    known = _remembered(tick, request.agent, request.idempotency_key, digest)
    if known is not None:
        return _again(tick, request.req, known)
    asker = question.source_agent_id
    route = tick.route(asker, prefer=question.source_node_id) or Route(asker, question.source_node_id, 0)
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.REPLY,
        source_node_id=tick.identity.node,
        source_agent_id=request.agent,
        to_agent_id=question.source_agent_id,
        corr_id=question.event_id,
        thread_id=question.thread_id or question.event_id,
        created_at=tick.stamp(),
        expires_at=rfc3339(tick.now.wall_ms + tick.policy.expires_in_ms),
        priority=question.priority,
        type=request.type,
        idempotency_key=request.idempotency_key,
        trace=Trace(source_owner_epoch=owner_epoch, route_decision=route.decision(), hops=hops),
        payload=request.payload,
    )
    return _emit(tick, request.req, event, route, digest)


def _check_labels(request: Send | Reply) -> None:
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= IDEMPOTENCY_KEY_MAX:
        raise InvalidEvent(f"an idempotency key has 1 to {IDEMPOTENCY_KEY_MAX} characters")
    if len(request.type or "") > TYPE_MAX:
        raise InvalidEvent(f"type has at most {TYPE_MAX} characters")
    if isinstance(request, Send) and len(request.thread_id or "") > THREAD_ID_MAX:
        raise InvalidEvent(f"threadId has at most {THREAD_ID_MAX} characters")


def _check_terms(request: Send) -> None:
    if request.expires_in_ms is not None and not 0 < request.expires_in_ms <= EXPIRES_IN_MS_MAX:
        raise InvalidEvent(f"an event lives 1 to {EXPIRES_IN_MS_MAX} ms")
    if not 0 <= request.priority <= 4:
        raise InvalidEvent("priority is 0 (critical) to 4 (low)")


def _digest(*fields: str | int | msgspec.Raw | None) -> bytes:
    """What tells one client request from another under the same idempotency key."""
    return sha256(msgspec.json.encode(fields)).digest()


def _remembered(tick: Tick, agent: AgentId, key: str | None, digest: bytes) -> Remembered | None:
    known = tick.store.remembered(agent, key) if key is not None else None
    if known is not None and known.request_hash != digest:
        raise IdempotencyConflict(
            f"the idempotency key was used for another request ({known.event_id})",
            hint="use a new key for a new request",
        )
    return known


def _again(tick: Tick, req: int, known: Remembered) -> Sent:
    row = standing(tick.store.obligations(known.event_id))
    assert row is not None, "an idempotency row is written with its delivery"
    return Sent(req, row.event_id, row.thread_id, row.to_agent, row.node, duplicate=True)


def _emit(tick: Tick, req: int, event: Event, route: Route, digest: bytes) -> Sent:
    assert event.source_agent_id is not None
    assert event.thread_id is not None
    assert event.expires_at is not None
    seq = tick.emit(event, (route.node,) if route.node else ())
    expires_at_ms = parse_rfc3339(event.expires_at)
    row = Delivery(
        event_id=event.event_id,
        kind=event.kind,
        from_agent=event.source_agent_id,
        to_agent=route.agent,
        node=route.node,
        state=DeliveryState.EMITTED,
        seq=seq,
        thread_id=event.thread_id,
        emitted_at_ms=tick.now.wall_ms,
        created_at_ms=tick.now.wall_ms,
        expires_at_ms=expires_at_ms,
        next_at_ms=first_check_ms(tick, expires_at_ms),
    )
    tick.store.put_delivery(row)
    if event.idempotency_key is not None:
        key = Remembered(
            agent=event.source_agent_id,
            key=event.idempotency_key,
            request_hash=digest,
            event_id=event.event_id,
        )
        tick.store.remember(key)
    if route.node is None:
        bury(tick, row, Input.REFUSED, "no_owner")
    return Sent(req, event.event_id, event.thread_id, route.agent, route.node, duplicate=False)
