"""Messages and replies leave: what an agent wants to say becomes an event with its obligations.

What becomes of the obligation is in ``deliveries``.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from gateway.audience import audience, means_several, one_of
from gateway.engine.attempts import parked
from gateway.engine.blobs import check_named
from gateway.engine.effects import Sent
from gateway.engine.inputs import Reply, Send
from gateway.engine.letters import bury
from gateway.engine.limits import EXPIRES_IN_MS_MAX
from gateway.engine.obligations import owe
from gateway.engine.revoked import nobody
from gateway.engine.tick import Tick
from gateway.engine.turns import Turns
from gateway.routing import Route, resolve
from outbox.delivery import Input, standing
from outbox.envelope import Event, Trace, decode_event
from outbox.errors import HopLimit, IdempotencyConflict, InvalidEvent, LoopLimit, NotFound
from outbox.ids import AgentId
from outbox.kinds import Kind
from outbox.limits import HOPS_MAX, IDEMPOTENCY_KEY_MAX, THREAD_ID_MAX, TYPE_MAX
from outbox.records import Delivery, Remembered
from outbox.schemaname import check_schema_name
from outbox.timestamps import rfc3339
from outbox.traceparent import readable_traceparent, traceparent


def send(tick: Tick, turns: Turns, request: Send, owner_epoch: int) -> Sent:
    """Append a message of an agent that this node owns since ``owner_epoch``.

    Raises CallerError branches; then nothing was appended.
    """
    _check_labels(request)
    _check_terms(request)
    check_named(tick, request)
    known = _remembered(tick, request)
    if known is not None:
        return _again(tick, request.req, known)
    away = tick.absences.away(tick.now.mono_ms)
    to = one_of(request.to)
    several = audience(tick.view, to, request.agent, away, tick.near) if means_several(to) else None
    route = resolve(tick.view, to, away, tick.near) if several is None else None
    if route is not None and route.node == tick.identity.node:
        turns.check_room(route.agent, request.priority)
    cause = cause_of(tick, turns, request)
    hops = _hops(tick, request, several.address if several else route.agent if route else "", cause)
    event_id = tick.entropy.event_id(tick.now.wall_ms)
    lifetime_ms = request.expires_in_ms or tick.policy.expires_in_ms
    event = Event(
        event_id=event_id,
        kind=Kind.MESSAGE,
        source_node_id=tick.identity.node,
        source_agent_id=request.agent,
        to_agent_id=route.agent if route else None,
        to_agents=several.agents if several else (),
        thread_id=request.thread_id or (cause.thread_id if cause else None) or event_id,
        created_at=tick.stamp,
        expires_at=rfc3339(tick.now.wall_ms + lifetime_ms),
        priority=request.priority,
        type=request.type,
        schema=request.schema,
        idempotency_key=request.idempotency_key,
        trace=Trace(
            source_owner_epoch=owner_epoch,
            route_decision=route.decision() if route else None,
            hops=hops,
            traceparent=_traceparent(request, cause),
        ),
        payload=request.payload,
        payload_ref=request.payload_ref,
    )
    if route is not None:
        return _emit(tick, request, event, route)
    assert several is not None
    rows = owe(tick, event, several.address, several.nodes)
    _remember(tick, request, event)
    return sent_of(request.req, rows, duplicate=False)


def reply(tick: Tick, request: Reply, question: Event, owner_epoch: int) -> Sent:
    """Append the answer to an event of the agent's inbox. Raises CallerError branches; then nothing was."""
    _check_labels(request)
    check_named(tick, request)
    assert question.source_agent_id is not None, "without one it does not reach an inbox"
    hops = question.trace.hops + 1
    _check_hops(hops)
    known = _remembered(tick, request)
    if known is not None:
        return _again(tick, request.req, known)
    asker = question.source_agent_id
    there = question.source_node_id if tick.view.revoked(question.source_node_id) is None else None
    route = tick.route(asker, prefer=question.source_node_id) or Route(asker, there, 0)
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=Kind.REPLY,
        source_node_id=tick.identity.node,
        source_agent_id=request.agent,
        to_agent_id=question.source_agent_id,
        corr_id=question.event_id,
        thread_id=question.thread_id or question.event_id,
        created_at=tick.stamp,
        expires_at=rfc3339(tick.now.wall_ms + tick.policy.expires_in_ms),
        priority=question.priority,
        type=request.type,
        schema=request.schema,
        idempotency_key=request.idempotency_key,
        trace=Trace(
            source_owner_epoch=owner_epoch,
            route_decision=route.decision(),
            hops=hops,
            traceparent=_traceparent(request, question),
        ),
        payload=request.payload,
        payload_ref=request.payload_ref,
    )
    return _emit(tick, request, event, route)


def cause_of(tick: Tick, turns: Turns, request: Send) -> Event | None:
    """The event that a message answers: the one that it names, else a message in hand whose thread it names.

    Nothing else counts: what an agent sends to somebody whose message it has in hand may have nothing to do
    with that. A reply in hand is what the agent has asked for: in its thread it asks on.
    Raises NotFound when the one that was named did not come for the agent.
    """
    if request.cause is not None:
        rows = [row for row in tick.store.ledger(request.cause) if row.to_agent == request.agent]
        if not rows:
            raise NotFound(f"{request.cause} did not come for {request.agent}", hint="leave the cause out")
        return decode_event(rows[0].body)
    if request.thread_id is None:
        return None
    held = turns.held_by(tick, request.agent)
    said = [event for event in held if event.kind == Kind.MESSAGE and event.thread_id == request.thread_id]
    return max(said, key=lambda event: event.trace.hops, default=None)


def _hops(tick: Tick, request: Send, to: str, cause: Event | None) -> int:
    """How many answers in a row it is, and it pays for its place in a loop. Raises HopLimit, LoopLimit."""
    if cause is None:
        _slow_circle(tick, request.agent)
        return 0
    hops = cause.trace.hops + 1
    _check_hops(hops)
    _slow_down(tick, request, to, cause)
    return hops


def _check_hops(hops: int) -> None:
    if hops > HOPS_MAX:
        raise HopLimit(
            f"more than {HOPS_MAX} answers in a row",
            hint="end your turn without an answer; start a new conversation if there is something new",
        )


def _slow_down(tick: Tick, request: Send, to: str, cause: Event) -> None:
    """Raises LoopLimit."""
    pair = " and ".join(sorted((request.agent, to)))
    keys = (f"pair {pair}", f"thread {request.thread_id or cause.thread_id}")
    wait_ms = tick.pace.wait_ms(keys, tick.now.mono_ms)
    if wait_ms:
        raise LoopLimit(pair, wait_ms)
    tick.pace.spend(keys, tick.now.mono_ms)


def _slow_circle(tick: Tick, agent: AgentId) -> None:
    """Raises LoopLimit."""
    wait_ms = tick.circles.pay(agent, tick.now.mono_ms)
    if wait_ms:
        raise LoopLimit(f"{agent} and others", wait_ms)


def _check_labels(request: Send | Reply) -> None:
    key = request.idempotency_key
    if key is not None and not 0 < len(key) <= IDEMPOTENCY_KEY_MAX:
        raise InvalidEvent(f"an idempotency key has 1 to {IDEMPOTENCY_KEY_MAX} characters")
    if request.type is not None and len(request.type) > TYPE_MAX:
        raise InvalidEvent(f"type has at most {TYPE_MAX} characters")
    if request.schema is not None:
        check_schema_name(request.schema)
    if request.traceparent is not None:
        traceparent(request.traceparent)


def _traceparent(request: Send | Reply, cause: Event | None) -> str | None:
    """Its author's own, else that of what it answers."""
    if request.traceparent is not None:
        return traceparent(request.traceparent)
    return None if cause is None else readable_traceparent(cause.trace.traceparent)


def _check_terms(request: Send) -> None:
    if request.thread_id is not None and len(request.thread_id) > THREAD_ID_MAX:
        raise InvalidEvent(f"threadId has at most {THREAD_ID_MAX} characters")
    if request.expires_in_ms is not None and not 0 < request.expires_in_ms <= EXPIRES_IN_MS_MAX:
        raise InvalidEvent(f"an event lives 1 to {EXPIRES_IN_MS_MAX} ms")
    if not 0 <= request.priority <= 4:
        raise InvalidEvent("priority is 0 (critical) to 4 (low)")


def _digest(request: Send | Reply) -> bytes:
    """What tells one client request from another under the same idempotency key.

    A blob and a schema came to requests one after the other: without them it is as it was before. A trace is
    not looked at: who asks again may do so in another span.
    """
    fields: tuple[object, ...]
    if isinstance(request, Reply):
        fields = (request.event_id, request.payload, request.type)
    else:
        fields = (
            request.to,
            request.payload,
            request.type,
            request.thread_id,
            request.expires_in_ms,
            request.priority,
            request.wait,
        )
    if request.schema is not None:
        fields = (*fields, request.payload_ref, request.schema)
    elif request.payload_ref is not None:
        fields = (*fields, request.payload_ref)
    return sha256(msgspec.json.encode(fields)).digest()


def _remembered(tick: Tick, request: Send | Reply) -> Remembered | None:
    if request.idempotency_key is None:
        return None
    known = tick.store.remembered(request.agent, request.idempotency_key)
    if known is not None and known.request_hash != _digest(request):
        raise IdempotencyConflict(
            f"the idempotency key was used for another request ({known.event_id})",
            hint="use a new key for a new request",
        )
    return known


def _again(tick: Tick, req: int, known: Remembered) -> Sent:
    rows = tick.store.obligations(known.event_id)
    assert rows, "an idempotency row is written with its delivery"
    return sent_of(req, rows, duplicate=True)


def sent_of(req: int, rows: Sequence[Delivery], *, duplicate: bool) -> Sent:
    """The answer about an event with these obligations."""
    row = rows[0] if len(rows) == 1 else standing(rows)
    assert row is not None
    nodes = tuple(row.node for row in rows if row.node is not None) if len(rows) > 1 else ()
    return Sent(req, row.event_id, row.thread_id, row.to_agent, row.node, duplicate=duplicate, nodes=nodes)


def _remember(tick: Tick, request: Send | Reply, event: Event) -> None:
    if request.idempotency_key is not None:
        row = Remembered(
            agent=request.agent,
            key=request.idempotency_key,
            request_hash=_digest(request),
            event_id=event.event_id,
        )
        tick.store.remember(row)


def _emit(tick: Tick, request: Send | Reply, event: Event, route: Route) -> Sent:
    (row,) = owe(tick, event, route.agent, (route.node,) if route.node else ())
    _remember(tick, request, event)
    if route.node is None and isinstance(request, Send) and request.wait:
        tick.store.put_delivery(parked(tick, row))
    elif route.node is None:
        bury(tick, row, Input.REFUSED, nobody(tick.view, route.agent))
    return sent_of(request.req, [row], duplicate=False)
