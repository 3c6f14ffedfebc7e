"""The sender's obligations: what the answers of others do to them.

Which step an answer causes is the table of ``outbox.delivery``; here is what each step does. Silence is the
business of ``timers``, the next attempt that of ``attempts``, what a node forgets of ``acceptances``.
"""

from msgspec.structs import replace

from gateway.engine.acks import cut
from gateway.engine.attempts import NOT_OWNER, scheduled, shown
from gateway.engine.letters import ANSWERED_AFTER_DEAD, NEVER_ACCEPTED, NOT_PROCESSED, about, bury
from gateway.engine.promises import with_promise
from gateway.engine.tick import Tick
from gateway.engine.unremembered import obligation
from outbox.delivery import INBOX_FULL, Input, is_final, is_for_several, settled, step, was_asked_alone
from outbox.envelope import Ack, Event
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, DeliveryState
from outbox.timestamps import parse_rfc3339

TURN_FAILED = "turn_failed"
DUPLICATE = "duplicate_engagement"
Along = tuple[int, EventId, NodeId | None]
"""Where a delivery stands among those of its state: when it was created, its event and its node."""

OLDEST: Along = (-1, EventId(f"evt_{'0' * 32}"), None)
"""A place before all deliveries of a state."""

_ASKED = frozenset({DeliveryState.EMITTED, DeliveryState.RETRY_PENDING, DeliveryState.ACCEPTED})
"""Who had ended it while it was superseded, and is asked again, answers with the same ACK."""
_PASSING = {NOT_OWNER: Input.REFUSED_NOT_OWNER, INBOX_FULL: Input.REFUSED_FULL}
"""Refusals after which another attempt may be taken."""


def place_of(row: Delivery) -> Along:
    """Where a delivery stands among those of its state."""
    return row.created_at_ms, row.event_id, row.node


def on_ack(tick: Tick, source: NodeId, ack: Ack, at: tuple[Epoch, Seq]) -> None:
    """An ACK arrived, and stands at ``at`` in its outbox. It counts only from a node that was asked.

    Raises InvalidEvent, before anything changed, when ``engagedAt`` or ``etaAt`` is no time.
    """
    row = obligation(tick, ack.ref, source)
    if row is None:
        return
    if row.via != tick.via:
        row = replace(row, via=tick.via)
    if ack.outcome is Outcome.REFUSED:
        _on_refusal(tick, row, ack)
        return
    row = shown(tick, row)
    if ack.status is AckStatus.ACCEPTED:
        row = with_promise(row, ack)
        if not (ack.promises and row.state is DeliveryState.ACCEPTED and row.accepted_epoch is not None):
            row = replace(row, accepted_epoch=at[0], accepted_seq=at[1])  # a promise is no new acceptance
        accepted = replace(row, accepted_at_ms=row.accepted_at_ms or tick.now.wall_ms)
        advance(tick, accepted, Input.ACK_ACCEPTED)
    elif row.processed_at_ms is None or row.state in _ASKED:
        _on_processed(tick, row, ack)


def on_reply(tick: Tick, source: NodeId, reply: Event) -> None:
    """A reply to an own event arrived. It counts only from the agent that was asked, where it was asked."""
    assert reply.corr_id is not None, "the envelope asks for it"
    row = obligation(tick, reply.corr_id, source)
    if row is None or not (is_for_several(row) or row.to_agent == reply.source_agent_id):
        return
    row = shown(tick, row)
    _note_late(tick, row, "a reply came")
    tick.close_incident(TURN_FAILED, about(row))
    answered = replace(row, replied_at_ms=row.replied_at_ms or tick.now.wall_ms, via=tick.via)
    advance(tick, answered, Input.REPLY)
    _report_duplicate(tick, answered)


def _on_refusal(tick: Tick, row: Delivery, ack: Ack) -> None:
    """A node takes it no more. Its agent may have had it all the same, and given it back."""
    if not is_final(row.state):
        error = cut(ack.error)
        refused = replace(row, error=error, engaged_at_ms=_engaged_at_ms(ack) or row.engaged_at_ms)
        advance(tick, refused, _PASSING.get(error or "", Input.REFUSED))
        _report_duplicate(tick, refused)


def _engaged_at_ms(ack: Ack) -> int | None:
    return parse_rfc3339(ack.engaged_at) if ack.engaged_at else None


def _on_processed(tick: Tick, row: Delivery, ack: Ack) -> None:
    answered = replace(
        row,
        processed_at_ms=tick.now.wall_ms,
        engaged_at_ms=_engaged_at_ms(ack),
        outcome=ack.outcome,
        error=cut(ack.error) if row.dead_at_ms is None else row.error,
    )
    if ack.outcome is Outcome.OK:
        _note_late(tick, row, "its turn was done")
    elif row.dead_at_ms is None and row.state is not DeliveryState.SUPERSEDED:
        tick.open_incident(TURN_FAILED, about(row), answered.error or "")
    advance(tick, answered, Input.ACK_PROCESSED)
    _report_duplicate(tick, answered)


def _report_duplicate(tick: Tick, row: Delivery) -> None:
    """Two nodes were asked, one after the other, and both have engaged it: no partition may hide that."""
    if was_asked_alone(row) or is_for_several(row) or not _was_engaged(row):
        return
    rows = tick.store.obligations(row.event_id)
    others = [str(other.node) for other in rows if other.node != row.node and _was_engaged(other)]
    if others:
        tick.open_incident(DUPLICATE, row.event_id, f"{row.to_agent} at {', '.join(others)} and {row.node}")


def _was_engaged(row: Delivery) -> bool:
    return row.engaged_at_ms is not None or row.replied_at_ms is not None


def _note_late(tick: Tick, row: Delivery, what: str) -> None:
    """Given up here, done there: recorded in the row, and somebody should look."""
    if row.dead_at_ms is not None:
        tick.open_incident(ANSWERED_AFTER_DEAD, about(row), what)


def advance(tick: Tick, row: Delivery, heard: Input) -> None:
    """Take the step that an input causes, and keep the row."""
    state = step(row.state, heard)
    match state:
        case DeliveryState.DEAD_LETTER:
            bury(tick, row, heard, "refused")
            return
        case DeliveryState.ACCEPTED:
            tick.close_incident(NEVER_ACCEPTED, about(row))
            sla_at_ms = tick.now.wall_ms + tick.policy.sla_process_ms
            next_at_ms = None if settled(Kind(row.kind), state) else sla_at_ms
            row = replace(row, state=state, error=None, next_at_ms=next_at_ms)
        case DeliveryState.PROCESSED | DeliveryState.REPLIED:
            tick.close_incident(NEVER_ACCEPTED, about(row))
            tick.close_incident(NOT_PROCESSED, about(row))
            row = replace(row, state=state, next_at_ms=None)
        case DeliveryState.RETRY_PENDING:
            row = replace(scheduled(tick, row), state=state)
        case _:
            row = replace(row, state=state or row.state)  # no step: recorded, no more
    tick.store.put_delivery(row)
