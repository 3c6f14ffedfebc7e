"""The sender's side: events leave, answers come back, what stays silent is retried or given up.

Which step an answer causes is the table of ``outbox.delivery``; here is what each step does.
"""

from hashlib import sha256

import msgspec
from msgspec.structs import replace

from gateway.engine.effects import Sent
from gateway.engine.inputs import Reply, Send
from gateway.engine.tick import Tick
from gateway.routing import Route, resolve
from outbox.chain import Head
from outbox.delivery import STEPS, Input, settled, step
from outbox.envelope import Ack, DeadLetter, Event, Signal, Trace, decode_event, encode_payload
from outbox.errors import HopLimit, IdempotencyConflict, InvalidEvent
from outbox.ids import AgentId, EventId, NodeId, epoch_ordinal
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.limits import HOPS_MAX, IDEMPOTENCY_KEY_MAX, THREAD_ID_MAX, TYPE_MAX
from outbox.records import Delivery, DeliveryState, Remembered
from outbox.timestamps import parse_rfc3339, rfc3339

NEVER_ACCEPTED = "never_accepted"
NOT_PROCESSED = "accepted_not_processed"
DEAD = "dead_letter"
TURN_FAILED = "turn_failed"

_DUE_MAX = 500
"""Timers handled in one tick; the rest follow in the next."""


def send(tick: Tick, request: Send) -> Sent:
    """Append a message. Raises CallerError branches; then nothing was appended."""
    _check_labels(request)
    if request.expires_in_ms is not None and request.expires_in_ms <= 0:
        raise InvalidEvent("expiresInMs must be positive")
    if not 0 <= request.priority <= 4:
        raise InvalidEvent("priority is 0 (critical) to 4 (low)")
    route = resolve(tick.view, request.to)
    digest = sha256(
        msgspec.json.encode((request.to, request.payload, request.type, request.thread_id))
    ).digest()
    known = _remembered(tick, request.agent, request.idempotency_key, digest)
    if known is not None:
        return _again(tick, request.req, known)
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
        trace=_trace(tick, route, request.agent, hops=0),
        payload=request.payload,
    )
    return _emit(tick, request.req, event, route, digest)


def reply(tick: Tick, request: Reply, question: Event) -> Sent:
    """Append the answer to an event of the agent's inbox. Raises CallerError branches."""
    _check_labels(request)
    if question.source_agent_id is None:
        raise InvalidEvent("nobody is waiting for an answer to this event")
    hops = question.trace.hops + 1
    if hops > HOPS_MAX:
        raise HopLimit(f"more than {HOPS_MAX} answers in a row", hint="start a new message instead")
    digest = sha256(msgspec.json.encode((question.event_id, request.payload, request.type))).digest()
    known = _remembered(tick, request.agent, request.idempotency_key, digest)
    if known is not None:
        return _again(tick, request.req, known)
    owner = tick.view.owner(question.source_agent_id)
    node = owner.node if owner else question.source_node_id
    route = Route(question.source_agent_id, node, owner.owner_epoch if owner else 0)
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
        trace=_trace(tick, route, request.agent, hops),
        payload=request.payload,
    )
    return _emit(tick, request.req, event, route, digest)


def on_ack(tick: Tick, source: NodeId, ack: Ack) -> None:
    """An ACK arrived. It counts only from the node that the delivery was routed to."""
    row = tick.store.delivery(ack.ref)
    if row is None or row.node != source:
        return
    if ack.outcome is Outcome.REFUSED:
        row = replace(row, error=ack.error)
        _advance(tick, row, Input.REFUSED_NOT_OWNER if ack.error == "not_owner" else Input.REFUSED)
    elif ack.status is AckStatus.ACCEPTED:
        if row.accepted_at_ms is None:
            row = replace(row, accepted_at_ms=tick.now.wall_ms)
        _advance(tick, row, Input.ACK_ACCEPTED)
    else:
        row = replace(
            row,
            processed_at_ms=row.processed_at_ms or tick.now.wall_ms,
            engaged_at_ms=parse_rfc3339(ack.engaged_at) if ack.engaged_at else row.engaged_at_ms,
            outcome=ack.outcome,
            error=ack.error,
        )
        _advance(tick, row, Input.ACK_PROCESSED)
        if ack.outcome is Outcome.FAILED:
            tick.open_incident(TURN_FAILED, row.event_id, ack.error or "")


def on_reply(tick: Tick, source: NodeId, question: EventId) -> None:
    """A reply to an own event arrived."""
    row = tick.store.delivery(question)
    if row is not None and row.node == source:
        row = replace(row, replied_at_ms=row.replied_at_ms or tick.now.wall_ms)
        _advance(tick, row, Input.REPLY)


def run_timers(tick: Tick) -> None:
    """Handle every delivery whose time has come."""
    for row in tick.store.due_deliveries(tick.now.wall_ms, _DUE_MAX):
        _due(tick, row)


def find_lost(tick: Tick, node: NodeId) -> None:
    """Retry what a node has read and provably did not accept.

    Only the node's own published cursor proves it, and only once its stream has been read here up to the head
    that it published with that cursor: a slow link or an absent node never burns an attempt.
    """
    upto = _read_by(tick, node)
    if upto is not None:
        before_ms = tick.now.wall_ms - tick.policy.retry.ack_timeout_ms
        for row in tick.store.unanswered(node, upto.seq, before_ms, _DUE_MAX):
            _advance(tick, row, Input.LOST)


def _check_labels(request: Send | Reply) -> None:
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= IDEMPOTENCY_KEY_MAX:
        raise InvalidEvent(f"an idempotency key has 1 to {IDEMPOTENCY_KEY_MAX} characters")
    if len(request.type or "") > TYPE_MAX:
        raise InvalidEvent(f"type has at most {TYPE_MAX} characters")
    if isinstance(request, Send) and len(request.thread_id or "") > THREAD_ID_MAX:
        raise InvalidEvent(f"threadId has at most {THREAD_ID_MAX} characters")


def _remembered(tick: Tick, agent: AgentId, key: str | None, digest: bytes) -> Remembered | None:
    known = tick.store.remembered(agent, key) if key is not None else None
    if known is not None and known.request_hash != digest:
        raise IdempotencyConflict(
            f"the idempotency key was used for another request ({known.event_id})",
            hint="use a new key for a new request",
        )
    return known


def _again(tick: Tick, req: int, known: Remembered) -> Sent:
    row = tick.store.delivery(known.event_id)
    assert row is not None, "an idempotency row is written with its delivery"
    return Sent(req, row.event_id, row.thread_id, row.to_agent, row.node, duplicate=True)


def _trace(tick: Tick, route: Route, agent: AgentId, hops: int) -> Trace:
    owner = tick.view.owner(agent)
    return Trace(
        source_owner_epoch=owner.owner_epoch if owner else 0, route_decision=route.decision(), hops=hops
    )


def _emit(tick: Tick, req: int, event: Event, route: Route, digest: bytes) -> Sent:
    assert event.source_agent_id is not None
    assert event.thread_id is not None
    assert event.expires_at is not None
    seq = tick.emit(event, (route.node,) if route.node else ())
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
        expires_at_ms=parse_rfc3339(event.expires_at),
        next_at_ms=_first_check_ms(tick, tick.now.wall_ms, parse_rfc3339(event.expires_at)),
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
        _bury(tick, row, Input.REFUSED, "no_owner")
    return Sent(req, event.event_id, event.thread_id, route.agent, route.node, duplicate=False)


def _first_check_ms(tick: Tick, emitted_at_ms: int, expires_at_ms: int) -> int:
    return min(expires_at_ms, emitted_at_ms + tick.policy.retry.ack_timeout_ms)


def _advance(tick: Tick, row: Delivery, heard: Input) -> None:
    state = step(row.state, heard)
    if state is None:
        tick.store.put_delivery(row)
        return
    if state is DeliveryState.DEAD_LETTER:
        _bury(tick, row, heard, "refused")
        return
    row = replace(row, state=state)
    match state:
        case DeliveryState.ACCEPTED:
            tick.close_incident(NEVER_ACCEPTED, row.event_id)
            sla_at_ms = tick.now.wall_ms + tick.policy.sla_process_ms
            row = replace(row, next_at_ms=None if settled(Kind(row.kind), state) else sla_at_ms)
        case DeliveryState.PROCESSED | DeliveryState.REPLIED:
            tick.close_incident(NEVER_ACCEPTED, row.event_id)
            tick.close_incident(NOT_PROCESSED, row.event_id)
            row = replace(row, next_at_ms=None)
        case DeliveryState.RETRY_PENDING:
            row = _schedule_retry(tick, row)
        case _:
            pass
    tick.store.put_delivery(row)


def _schedule_retry(tick: Tick, row: Delivery) -> Delivery:
    delay_ms = tick.policy.retry.backoff_ms(row.attempt, tick.entropy.fraction())
    return replace(row, next_at_ms=min(row.expires_at_ms, tick.now.wall_ms + delay_ms))


def _due(tick: Tick, row: Delivery) -> None:
    now_ms = tick.now.wall_ms
    if row.state is DeliveryState.ACCEPTED:
        _overdue(tick, row)
    elif now_ms >= row.expires_at_ms:
        _bury(tick, row, Input.EXPIRED, "expired")
    elif row.state is DeliveryState.RETRY_PENDING:
        _retry(tick, row)
    elif row.state is DeliveryState.EMITTED:
        _unaccepted(tick, row)


def _unaccepted(tick: Tick, row: Delivery) -> None:
    upto = _read_by(tick, row.node) if row.node is not None else None
    if upto is not None and upto.seq >= row.seq:
        _advance(tick, row, Input.LOST)
        return
    sla_at_ms = row.created_at_ms + tick.policy.sla_accept_ms
    if tick.now.wall_ms >= sla_at_ms:
        tick.open_incident(NEVER_ACCEPTED, row.event_id, f"{row.to_agent} at {row.node}")
        sla_at_ms = row.expires_at_ms
    tick.store.put_delivery(replace(row, next_at_ms=min(row.expires_at_ms, sla_at_ms)))


def _overdue(tick: Tick, row: Delivery) -> None:
    """Accepted and silent: an incident and one status request; a day after its expiry a dead letter."""
    give_up_ms = row.expires_at_ms + tick.policy.silence_ms
    if tick.now.wall_ms >= give_up_ms:
        _bury(tick, row, Input.EXPIRED, "silence")
        return
    assert row.node is not None
    if tick.store.incident(NOT_PROCESSED, row.event_id) is None:
        signal = Signal(signal="status_request", ref=row.event_id)
        tick.emit(_notice(tick, Kind.SIGNAL, encode_payload(signal), None), (row.node,))
    tick.open_incident(NOT_PROCESSED, row.event_id, f"{row.to_agent} at {row.node}")
    tick.store.put_delivery(replace(row, next_at_ms=give_up_ms))


def _retry(tick: Tick, row: Delivery) -> None:
    """Append the next attempt: the same event, routed anew. The attempt is written before it is made."""
    if tick.policy.retry.exhausted(row.attempt):
        _bury(tick, row, Input.EXHAUSTED, "attempts_exhausted")
        return
    owner = tick.view.owner(row.to_agent)
    if owner is None:
        tick.store.put_delivery(_schedule_retry(tick, row))
        return
    first_seq, body = tick.store.events_about(row.event_id)[0]
    first = decode_event(body)
    route = Route(row.to_agent, owner.node, owner.owner_epoch)
    trace = replace(
        first.trace,
        attempt=row.attempt + 1,
        first_position=(tick.identity.epoch, first_seq),
        route_decision=route.decision(),
    )
    seq = tick.emit(replace(first, trace=trace), (owner.node,))
    tick.store.put_delivery(
        replace(
            row,
            state=STEPS[row.state, Input.RETRIED],
            attempt=row.attempt + 1,
            node=owner.node,
            seq=seq,
            emitted_at_ms=tick.now.wall_ms,
            next_at_ms=_first_check_ms(tick, tick.now.wall_ms, row.expires_at_ms),
        )
    )


def _bury(tick: Tick, row: Delivery, why: Input, reason: str) -> None:
    """Give up, where everybody can see it."""
    assert step(row.state, why) is DeliveryState.DEAD_LETTER, f"{row.state} does not end by {why}"
    letter = DeadLetter(ref=row.event_id, reason=reason, attempts=row.attempt, last_error=row.error)
    event = _notice(tick, Kind.DEAD_LETTER, encode_payload(letter), row.event_id)
    tick.emit(event, (row.node,) if row.node else ())
    tick.close_incident(NEVER_ACCEPTED, row.event_id)
    tick.close_incident(NOT_PROCESSED, row.event_id)
    tick.open_incident(DEAD, row.event_id, reason)
    tick.store.put_delivery(
        replace(
            row,
            state=DeliveryState.DEAD_LETTER,
            dead_at_ms=tick.now.wall_ms,
            next_at_ms=None,
            error=row.error or reason,
        )
    )


def _notice(tick: Tick, kind: Kind, payload: msgspec.Raw, corr_id: EventId | None) -> Event:
    return Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=kind,
        source_node_id=tick.identity.node,
        corr_id=corr_id,
        created_at=tick.stamp(),
        payload=payload,
    )


def _read_by(tick: Tick, node: NodeId) -> Head | None:
    """Up to where a node says it has read us, once we have read all that it had written by then."""
    published = tick.view.cursor(node, tick.identity.node)
    theirs = tick.view.cursors.get(node)
    ours = tick.store.cursor(node)
    if published is None or theirs is None or ours is None or published[0] != tick.identity.epoch:
        return None
    epoch, seq = theirs.head
    read = (epoch_ordinal(ours.epoch), ours.seq) >= (epoch_ordinal(epoch), seq)
    return Head(tick.identity.epoch, published[1], b"") if read else None
