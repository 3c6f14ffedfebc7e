"""The sender's obligations: answers come back, what stays silent is retried or given up.

Which step an answer causes is the table of ``outbox.delivery``; here is what each step does.
"""

import msgspec
from msgspec.structs import replace

from gateway.engine.acks import cut
from gateway.engine.limits import DUE_MAX
from gateway.engine.tick import Tick
from gateway.routing import Route
from outbox.delivery import STEPS, Input, is_final, settled, step
from outbox.envelope import Ack, DeadLetter, Event, Signal, decode_event, encode_payload
from outbox.ids import EventId, NodeId, Seq, epoch_ordinal
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, DeliveryState
from outbox.timestamps import parse_rfc3339

NEVER_ACCEPTED = "never_accepted"
NOT_PROCESSED = "accepted_not_processed"
DEAD = "dead_letter"
TURN_FAILED = "turn_failed"
ANSWERED_AFTER_DEAD = "answered_after_dead_letter"


# --- answers


def on_ack(tick: Tick, source: NodeId, ack: Ack) -> None:
    """An ACK arrived. It counts only from the node that the delivery was routed to.

    Raises InvalidEvent, before anything changed, when ``engagedAt`` is no time.
    """
    row = tick.store.delivery(ack.ref)
    if row is None or row.node != source:
        return
    if ack.outcome is Outcome.REFUSED:
        _on_refusal(tick, row, cut(ack.error))
    elif ack.status is AckStatus.ACCEPTED:
        accepted_at_ms = row.accepted_at_ms or tick.now.wall_ms
        _advance(tick, replace(row, accepted_at_ms=accepted_at_ms), Input.ACK_ACCEPTED)
    elif row.processed_at_ms is None:
        _on_processed(tick, row, ack)


def on_reply(tick: Tick, source: NodeId, reply: Event) -> None:
    """A reply to an own event arrived. It counts only from the agent that was asked, where it was asked."""
    assert reply.corr_id is not None, "the envelope asks for it"
    row = tick.store.delivery(reply.corr_id)
    if row is None or (row.node, row.to_agent) != (source, reply.source_agent_id):
        return
    _note_late(tick, row, "a reply came")
    tick.close_incident(TURN_FAILED, row.event_id)
    _advance(tick, replace(row, replied_at_ms=row.replied_at_ms or tick.now.wall_ms), Input.REPLY)


def _on_refusal(tick: Tick, row: Delivery, error: str | None) -> None:
    if not is_final(row.state):
        heard = Input.REFUSED_NOT_OWNER if error == "not_owner" else Input.REFUSED
        _advance(tick, replace(row, error=error), heard)


def _on_processed(tick: Tick, row: Delivery, ack: Ack) -> None:
    answered = replace(
        row,
        processed_at_ms=tick.now.wall_ms,
        engaged_at_ms=parse_rfc3339(ack.engaged_at) if ack.engaged_at else None,
        outcome=ack.outcome,
        error=cut(ack.error) if row.dead_at_ms is None else row.error,
    )
    if ack.outcome is Outcome.OK:
        _note_late(tick, row, "its turn was done")
    elif row.dead_at_ms is None:
        tick.open_incident(TURN_FAILED, row.event_id, answered.error or "")
    _advance(tick, answered, Input.ACK_PROCESSED)


def _note_late(tick: Tick, row: Delivery, what: str) -> None:
    """Given up here, done there: recorded in the row, and somebody should look."""
    if row.dead_at_ms is not None:
        tick.open_incident(ANSWERED_AFTER_DEAD, row.event_id, what)


def _advance(tick: Tick, row: Delivery, heard: Input) -> None:
    state = step(row.state, heard)
    if state is DeliveryState.DEAD_LETTER:
        bury(tick, row, heard, "refused")
        return
    match state:
        case DeliveryState.ACCEPTED:
            tick.close_incident(NEVER_ACCEPTED, row.event_id)
            sla_at_ms = tick.now.wall_ms + tick.policy.sla_process_ms
            row = replace(row, error=None, next_at_ms=None if settled(Kind(row.kind), state) else sla_at_ms)
        case DeliveryState.PROCESSED | DeliveryState.REPLIED:
            tick.close_incident(NEVER_ACCEPTED, row.event_id)
            tick.close_incident(NOT_PROCESSED, row.event_id)
            row = replace(row, next_at_ms=None)
        case DeliveryState.RETRY_PENDING:
            row = _schedule_retry(tick, row)
        case _:
            pass  # no step: recorded, no more
    tick.store.put_delivery(replace(row, state=state or row.state))


# --- time


def run_timers(tick: Tick) -> None:
    """Handle every delivery whose time has come."""
    for row in tick.store.due_deliveries(tick.now.wall_ms, DUE_MAX):
        if row.state is DeliveryState.ACCEPTED:
            _overdue(tick, row)
        elif tick.now.wall_ms >= row.expires_at_ms:
            bury(tick, row, Input.EXPIRED, "expired")
        elif row.state is DeliveryState.RETRY_PENDING:
            _retry(tick, row)
        else:
            _unaccepted(tick, row)


def first_check_ms(tick: Tick, expires_at_ms: int) -> int:
    """When to look whether an attempt made now was accepted."""
    return min(expires_at_ms, tick.now.wall_ms + tick.policy.retry.ack_timeout_ms)


def find_lost(tick: Tick, node: NodeId) -> None:
    """Retry what a node has read and provably did not accept.

    Only the node's own published cursor proves it, and only once its stream has been read here up to the head
    that it published with that cursor: a slow link or an absent node never burns an attempt.
    """
    upto = _read_by(tick, node)
    if upto is not None:
        before_ms = tick.now.wall_ms - tick.policy.retry.ack_timeout_ms
        for row in tick.store.unanswered(node, upto, before_ms, DUE_MAX):
            _advance(tick, row, Input.LOST)


def _read_by(tick: Tick, node: NodeId) -> Seq | None:
    """Up to where a node says it has read us, once we have read all that it had written by then."""
    published = tick.view.cursor(node, tick.identity.node)
    theirs = tick.view.cursors.get(node)
    ours = tick.store.cursor(node)
    if published is None or theirs is None or ours is None or published[0] != tick.identity.epoch:
        return None
    epoch, seq = theirs.head
    read = (epoch_ordinal(ours.epoch), ours.seq) >= (epoch_ordinal(epoch), seq)
    return published[1] if read else None


def _unaccepted(tick: Tick, row: Delivery) -> None:
    assert row.node is not None, "what has no node is a dead letter from the start"
    upto = _read_by(tick, row.node)
    if upto is not None and upto >= row.seq:
        _advance(tick, row, Input.LOST)
        return
    _check_sla(tick, row)
    sla_at_ms = _sla_ms(tick, row)
    next_at_ms = sla_at_ms if sla_at_ms > tick.now.wall_ms else row.expires_at_ms
    tick.store.put_delivery(replace(row, next_at_ms=min(row.expires_at_ms, next_at_ms)))


def _check_sla(tick: Tick, row: Delivery) -> None:
    if tick.now.wall_ms >= _sla_ms(tick, row):
        tick.open_incident(NEVER_ACCEPTED, row.event_id, f"{row.to_agent} at {row.node}")


def _sla_ms(tick: Tick, row: Delivery) -> int:
    return row.created_at_ms + tick.policy.sla_accept_ms


def _overdue(tick: Tick, row: Delivery) -> None:
    """Accepted and silent: an incident and one status request; a day after its expiry a dead letter."""
    give_up_ms = row.expires_at_ms + tick.policy.silence_ms
    if tick.now.wall_ms >= give_up_ms:
        bury(tick, row, Input.EXPIRED, "silence")
        return
    assert row.node is not None
    if tick.store.incident(NOT_PROCESSED, row.event_id) is None:
        signal = Signal(signal="status_request", ref=row.event_id)
        tick.emit(_notice(tick, Kind.SIGNAL, encode_payload(signal), row.event_id), (row.node,))
    tick.open_incident(NOT_PROCESSED, row.event_id, f"{row.to_agent} at {row.node}")
    tick.store.put_delivery(replace(row, next_at_ms=give_up_ms))


# --- the next attempt, and the end of attempts


def _schedule_retry(tick: Tick, row: Delivery) -> Delivery:
    """Always later than this tick: attempt 1 may not be in the store before its end."""
    delay_ms = max(1, tick.policy.retry.backoff_ms(row.attempt, tick.entropy.fraction()))
    return replace(row, next_at_ms=min(row.expires_at_ms, tick.now.wall_ms + delay_ms))


def _retry(tick: Tick, row: Delivery) -> None:
    """Append the next attempt: the same event, routed anew. The attempt is written before it is made."""
    _check_sla(tick, row)
    if tick.policy.retry.exhausted(row.attempt):
        bury(tick, row, Input.EXHAUSTED, "attempts_exhausted")
        return
    owner = tick.view.owner(row.to_agent)
    if owner is None:
        tick.store.put_delivery(_schedule_retry(tick, row))
        return
    entry = tick.store.events_about(row.event_id)[0]
    first = decode_event(entry.body)
    trace = replace(
        first.trace,
        attempt=row.attempt + 1,
        first_position=tick.store.first_position(row.event_id),
        route_decision=Route(row.to_agent, owner.node, owner.owner_epoch).decision(),
    )
    tick.store.put_delivery(
        replace(
            row,
            state=STEPS[row.state, Input.RETRIED],
            attempt=row.attempt + 1,
            node=owner.node,
            seq=tick.emit(replace(first, trace=trace), (owner.node,)),
            emitted_at_ms=tick.now.wall_ms,
            next_at_ms=first_check_ms(tick, row.expires_at_ms),
        )
    )


def bury(tick: Tick, row: Delivery, why: Input, reason: str) -> None:
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


def _notice(tick: Tick, kind: Kind, payload: msgspec.Raw, about: EventId) -> Event:
    return Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=kind,
        source_node_id=tick.identity.node,
        corr_id=about,
        created_at=tick.stamp(),
        payload=payload,
    )
