"""The sender's obligations: what the answers of others do to them.

Which step an answer causes is the table of ``outbox.delivery``; here is what each step does. Silence is the
business of ``timers``, the next attempt that of ``attempts``, what a node forgets of ``acceptances``.
"""

from msgspec.structs import replace

from gateway.engine.acks import cut
from gateway.engine.attempts import NOT_OWNER, due_again_ms, shown
from gateway.engine.letters import ANSWERED_AFTER_DEAD, NEVER_ACCEPTED, NOT_PROCESSED, about, bury, close
from gateway.engine.promises import promised
from gateway.engine.tick import Tick
from gateway.engine.unremembered import of_a_lost_attempt
from outbox.delivery import INBOX_FULL, Input, is_final, is_for_several, step, was_asked_alone
from outbox.envelope import Ack, Event
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import PROCESSED, AckStatus, Outcome
from outbox.records import Delivery, DeliveryState
from outbox.timestamps import parse_rfc3339

TURN_FAILED = "turn_failed"
DUPLICATE = "duplicate_engagement"
Along = tuple[int, EventId, NodeId | None]
"""Where a delivery stands among those of its state: when it was created, its event and its node."""

OLDEST: Along = (-1, EventId(f"evt_{'0' * 32}"), None)
"""A place before all deliveries of a state."""

# Looked up once: before Python 3.12 that of a member of an enum is slow.
_ACCEPTED, _HAS_ACCEPTED = DeliveryState.ACCEPTED, AckStatus.ACCEPTED
_OK, _REFUSED = Outcome.OK, Outcome.REFUSED

_ASKED = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING, DeliveryState.ACCEPTED})
"""Who had ended it while it was superseded, and is asked again, answers with the same ACK."""
_PASSING = {NOT_OWNER: Input.REFUSED_NOT_OWNER, INBOX_FULL: Input.REFUSED_FULL}
"""Refusals after which another attempt may be taken."""
_ENDED_BY = {
    DeliveryState.ACCEPTED: (NEVER_ACCEPTED,),
    DeliveryState.PROCESSED: (NEVER_ACCEPTED, NOT_PROCESSED),
    DeliveryState.REPLIED: (NEVER_ACCEPTED, NOT_PROCESSED),
}
"""Incidents that end when a delivery comes into a state."""


def place_of(row: Delivery) -> Along:
    """Where a delivery stands among those of its state."""
    return row.created_at_ms, row.event_id, row.node


def on_ack(tick: Tick, source: NodeId, ack: Ack, at: tuple[Epoch, Seq], said_by: EventId) -> None:
    """An ACK arrived as the event ``said_by``, and stands at ``at`` in its outbox. It counts only from a node
    that was asked.

    Raises InvalidEvent, before anything changed, when ``engagedAt`` or ``etaAt`` is no time.
    """
    row = tick.store.delivery(ack.ref, source) or of_a_lost_attempt(tick, ack.ref, source)
    if row is None:
        return
    if ack.outcome is _REFUSED:
        _on_refusal(tick, row, ack)
        return
    row = shown(tick, row)
    if ack.status is _HAS_ACCEPTED:
        _on_accepted(tick, row, ack, at)
    elif row.processed_at_ms is None or row.state in _ASKED:
        _on_processed(tick, row, ack, said_by)


def on_reply(tick: Tick, source: NodeId, reply: Event, row: Delivery | None) -> bool:
    """A reply to an own event arrived. It counts only from the agent that was asked, where it was asked.

    ``row`` is what the node is known to owe. Whether another node was asked too, and may answer as well.
    """
    assert reply.corr_id is not None, "the envelope asks for it"
    row = row or of_a_lost_attempt(tick, reply.corr_id, source)
    if row is None or not (is_for_several(row) or row.to_agent == reply.source_agent_id):
        return False
    row = shown(tick, row)
    _note_late(tick, row, "a reply came")
    close(tick, row, TURN_FAILED)
    advance(tick, row, Input.REPLY, via=tick.via, replied_at_ms=row.replied_at_ms or tick.now.wall_ms)
    return _was_contested(tick, row)


def _on_accepted(tick: Tick, row: Delivery, ack: Ack, at: tuple[Epoch, Seq]) -> None:
    said = promised(ack)
    if not (said and row.state is _ACCEPTED and row.accepted_epoch is not None):
        said |= {"accepted_epoch": at[0], "accepted_seq": at[1]}  # a promise is no new acceptance
    since_ms = row.accepted_at_ms or tick.now.wall_ms
    advance(tick, row, Input.ACK_ACCEPTED, via=tick.via, accepted_at_ms=since_ms, **said)


def _on_refusal(tick: Tick, row: Delivery, ack: Ack) -> None:
    """A node takes it no more. Its agent may have had it all the same, and given it back."""
    if not is_final(row.state):
        error, engaged_at_ms = cut(ack.error), _engaged_at_ms(ack) or row.engaged_at_ms
        heard = _PASSING.get(error or "", Input.REFUSED)
        advance(tick, row, heard, via=tick.via, error=error, engaged_at_ms=engaged_at_ms)
        _was_contested(tick, row)


def _engaged_at_ms(ack: Ack) -> int | None:
    return parse_rfc3339(ack.engaged_at) if ack.engaged_at else None


def _on_processed(tick: Tick, row: Delivery, ack: Ack, said_by: EventId) -> None:
    error = cut(ack.error) if row.dead_at_ms is None else row.error
    engaged_at_ms = _engaged_at_ms(ack)
    if ack.outcome is _OK:
        _note_late(tick, row, "its turn was done")
    elif row.dead_at_ms is None and row.state is not DeliveryState.SUPERSEDED:
        tick.open_incident(TURN_FAILED, about(row), error or "")
    advance(
        tick,
        row,
        Input.ACK_PROCESSED,
        via=tick.via,
        processed_at_ms=tick.now.wall_ms,
        engaged_at_ms=engaged_at_ms,
        outcome=ack.outcome,
        error=error,
        ended_by=row.ended_by or said_by,
    )
    _was_contested(tick, row)


def _was_contested(tick: Tick, row: Delivery) -> bool:
    """Whether two nodes were asked, one after the other. That both have engaged it no partition may hide."""
    if was_asked_alone(row) or is_for_several(row):
        return False
    rows = tick.store.obligations(row.event_id)
    engaged = [known.node for known in rows if _was_engaged(known)]
    others = [str(node) for node in engaged if node != row.node]
    if others and row.node in engaged:
        tick.open_incident(DUPLICATE, row.event_id, f"{row.to_agent} at {', '.join(others)} and {row.node}")
    return True


def _was_engaged(row: Delivery) -> bool:
    return row.engaged_at_ms is not None or row.replied_at_ms is not None


def _note_late(tick: Tick, row: Delivery, what: str) -> None:
    """Given up here, done there: recorded in the row, and somebody should look."""
    if row.dead_at_ms is not None:
        tick.open_incident(ANSWERED_AFTER_DEAD, about(row), what)


def advance(tick: Tick, row: Delivery, heard: Input, **said: object) -> None:
    """Take the step that an input causes, and keep the row with what it says beside."""
    state = step(row.state, heard)
    if state is None:
        pass  # recorded, no more
    elif state in _ENDED_BY:
        close(tick, row, *_ENDED_BY[state])
        said |= {"state": state, "next_at_ms": None}
        if state is _ACCEPTED:
            said["error"] = None
            if row.kind in PROCESSED:
                said["next_at_ms"] = tick.now.wall_ms + tick.policy.sla_process_ms
    elif state is DeliveryState.DEAD_LETTER:
        bury(tick, replace(row, **said), heard, "refused")
        return
    elif state is DeliveryState.RETRY_PENDING:
        said |= {"state": state, "next_at_ms": due_again_ms(tick, replace(row, **said))}
    else:
        said["state"] = state
    tick.store.put_delivery(replace(row, **said))
