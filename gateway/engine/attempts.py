"""The next attempt: when it is due, where it goes, and what becomes of the one before.

An attempt is written before it is made. One that goes to another node than the one before supersedes it: the
former node, if it reads both, engages neither; if it had engaged already, both answers are recorded and the
duplicate is reported.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from gateway.engine.errands import Task
from gateway.engine.letters import bury
from gateway.engine.limits import DUE_MAX
from gateway.engine.repeating import stands_now
from gateway.engine.tick import Tick
from gateway.routing import Route
from outbox.delivery import INBOX_FULL, STEPS, Input, is_for_several
from outbox.envelope import RouteDecision, decode_event
from outbox.ids import AgentId, NodeId
from outbox.records import Delivery, DeliveryState
from outbox.retry import RetryPolicy
from stateroom.view import View

NOT_OWNER = "not_owner"
# Looked up once: before Python 3.12 that of a member of an enum is slow.
_PENDING, _OWING = DeliveryState.RETRY_PENDING, Task.OWING

_UNANSWERED = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})


def first_check_ms(tick: Tick, expires_at_ms: int) -> int:
    """When to look whether an attempt made now was accepted."""
    return min(expires_at_ms, tick.now.wall_ms + tick.policy.retry.ack_timeout_ms)


def due_again_ms(tick: Tick, row: Delivery) -> int:
    """When the next attempt is made: later than this tick, since the first may not stand before its end."""
    policy, tries = _patience(tick, row)
    delay_ms = max(1, policy.backoff_ms(tries, tick.entropy.fraction()))
    return min(row.expires_at_ms, tick.now.wall_ms + delay_ms)


def _patience(tick: Tick, row: Delivery) -> tuple[RetryPolicy, int]:
    """The policy, and how often it was tried. What a full inbox refused counts only while it is full."""
    if row.error == INBOX_FULL:
        return tick.policy.retry.patient(), row.attempt
    return tick.policy.retry, row.tries


def parked(tick: Tick, row: Delivery) -> Delivery:
    """The row of an event that waits for its agent to have an owner, which burns no attempt."""
    poll_at_ms = tick.now.wall_ms + tick.policy.retry.cap_ms
    return replace(row, state=DeliveryState.RETRY_PENDING, next_at_ms=min(row.expires_at_ms, poll_at_ms))


def retry(tick: Tick, row: Delivery) -> None:
    """Append the next attempt, routed anew; without anybody to route it to it waits, which burns none."""
    policy, tries = _patience(tick, row)
    if row.node is not None and policy.exhausted(tries):
        bury(tick, row, Input.EXHAUSTED, "attempts_exhausted")
        return
    if is_for_several(row):
        assert row.node is not None, "what is for several goes to nodes that are known"
        append(tick, row, row.node, None)
        return
    route = route_of(tick, row)
    if route is None or route.node is None:
        tick.store.put_delivery(parked(tick, row))
    else:
        append(tick, row, route.node, route.decision())


def route_of(tick: Tick, row: Delivery) -> Route | None:
    """Where the next attempt of an event to one agent goes; not where it was refused, if it can."""
    refused: frozenset[NodeId] = frozenset()
    if row.tries > 1 or row.error == NOT_OWNER:
        known = tick.store.obligations(row.event_id)
        refused = frozenset(other.node for other in known if other.node and other.error == NOT_OWNER)
    return tick.route(row.to_agent, prefer=row.node, avoid=refused)


def append(tick: Tick, row: Delivery, node: NodeId, decision: RouteDecision | None) -> None:
    """Put the same event into the outbox once more, for ``node``."""
    known = tick.store.obligations(row.event_id)
    first_entry = tick.store.events_about(row.event_id)[0]
    first = decode_event(first_entry.body)
    attempt = max(other.attempt for other in known) + 1
    trace = replace(
        first.trace,
        attempt=attempt,
        first_position=tick.store.first_position(row.event_id),
        route_decision=decision if decision is not None else first.trace.route_decision,
    )
    if node != row.node:
        tick.store.put_delivery(replace(row, state=STEPS[row.state, Input.REROUTED], next_at_ms=None))
    there = next((other for other in known if other.node == node), None)
    seq = tick.emit(replace(first, trace=trace), (node,))
    tick.store.put_delivery(
        replace(
            there or unanswered(row, node),
            state=DeliveryState.EMITTED,
            attempt=attempt,
            tries=row.tries + (row.node is not None and row.error != INBOX_FULL),
            seq=seq,
            emitted_at_ms=tick.now.wall_ms,
            next_at_ms=first_check_ms(tick, row.expires_at_ms),
        )
    )


def shown(tick: Tick, row: Delivery) -> Delivery:
    """The row of an event that is answered. If it stands only where nobody can see it here, it is said again.

    A copy of this node has shown it, or a history that is given up. The next attempt was only due.
    """
    if row.state not in _UNANSWERED or row.node is None:
        return row
    if not _is_due_again(tick, row) or not _is_hidden(tick, row):
        return row
    append(tick, row, row.node, None)
    again = tick.store.delivery(row.event_id, row.node)
    assert again is not None, "it was just written"
    return again


def _is_due_again(tick: Tick, row: Delivery) -> bool:
    """Whether its next attempt is due, also while not every row says so that a new epoch owes again."""
    if row.state is _PENDING:
        return True
    return tick.errands.any(_OWING) and not stands_now(tick, row.event_id, row.attempt)


def _is_hidden(tick: Tick, row: Delivery) -> bool:
    first = tick.store.first_position(row.event_id)
    if first is None:
        return False
    return any(past.epoch == first[0] and first[1] > past.shown for past in tick.store.ended_epochs())


def wake(tick: Tick, agent: AgentId, stood_at: Iterable[NodeId | None]) -> None:
    """The agent has an owner (again): what waits for one at these places is due now."""
    for node in stood_at:
        for row in tick.store.unaccepted(agent, node, DUE_MAX):
            if row.state is DeliveryState.RETRY_PENDING:
                tick.store.put_delivery(replace(row, next_at_ms=tick.now.wall_ms))


def see_owners(tick: Tick, before: View) -> None:
    """What is for an agent that came, or came back, need not wait for its next attempt."""
    if tick.view.agents is before.agents:
        return
    for agent, owner in tick.view.agents.items():
        known = before.agents.get(agent)
        if owner.status == "active" and (known is None or known.status != "active"):
            former = (known.node, *known.fallback) if known is not None else ()
            wake(tick, agent, {None: None, owner.node: None, **dict.fromkeys(former)})


def unanswered(row: Delivery, node: NodeId) -> Delivery:
    """The same obligation at another node, which has said nothing yet."""
    return Delivery(
        event_id=row.event_id,
        kind=row.kind,
        from_agent=row.from_agent,
        to_agent=row.to_agent,
        node=node,
        state=row.state,
        seq=row.seq,
        thread_id=row.thread_id,
        emitted_at_ms=row.emitted_at_ms,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
        next_at_ms=row.next_at_ms,
    )
