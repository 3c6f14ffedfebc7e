"""The ACKs a receiver owes, as events of its own outbox."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.engine.limits import ERROR_CHARS_MAX
from gateway.engine.tick import Tick
from outbox.envelope import Ack, Event, decode_event, decode_header, decode_payload, encode_payload
from outbox.ids import EventId, NodeId
from outbox.kinds import PROCESSED, AckStatus, Kind, Outcome
from outbox.readership import names
from outbox.records import Received, Share, TurnState
from outbox.timestamps import rfc3339

# Looked up once: before Python 3.12 that of a member of an enum is slow.
_ACK, _ACCEPTED, _DONE = Kind.ACK, AckStatus.ACCEPTED, TurnState.DONE
_SOLE, _LATE = Share.SOLE, Share.LATE


def accept(tick: Tick, row: Received) -> None:
    """Emit ``ack:accepted``: in the same transaction as the row it speaks of."""
    tell(tick, row.source, Ack(ref=row.event_id, status=_ACCEPTED))


def process(tick: Tick, row: Received) -> None:
    """Emit the terminal ``ack:processed`` of a row that is done: one for each row, ever."""
    assert row.outcome is not None
    ack = Ack(
        ref=row.event_id,
        status=AckStatus.PROCESSED,
        outcome=row.outcome,
        error=row.error,
        engaged_at=rfc3339(row.engaged_at_ms) if row.engaged_at_ms is not None else None,
        deliveries=row.delivery_count,
    )
    tell(tick, row.source, ack)


def end(tick: Tick, row: Received) -> None:
    """A turn has ended: say so where somebody waits for it and all turns of the event have."""
    if not is_awaited(row):
        return
    told = row
    if row.share is not _SOLE:
        told = combined(tick.store.turns_of(row.source, row.event_id))
    if told.state is _DONE:
        process(tick, told)


def is_awaited(row: Received) -> bool:
    """Whether somebody waits for the end of a turn."""
    return row.share is not _LATE and row.kind in PROCESSED


def combined(rows: Sequence[Received]) -> Received:
    """The turns of one event at this node as if they were one: done when all are, failed when one has.

    An ACK speaks for the node. Whether an agent that came late is done nobody waits for.
    """
    owed = [row for row in rows if row.share is not Share.LATE] or list(rows)
    first = owed[0]
    if len(owed) == 1:
        return first
    if any(row.state is not TurnState.DONE for row in owed):
        return replace(first, state=TurnState.QUEUED)
    bad = [row for row in owed if row.outcome is not Outcome.OK]
    refused = len(bad) == len(owed) and all(row.outcome is Outcome.REFUSED for row in bad)
    engaged = [row.engaged_at_ms for row in owed if row.engaged_at_ms is not None]
    return replace(
        first,
        state=TurnState.DONE,
        outcome=Outcome.REFUSED if refused else (Outcome.FAILED if bad else Outcome.OK),
        error=cut(f"{len(bad)} of {len(owed)}: {bad[0].to_agent}: {bad[0].error}") if bad else None,
        engaged_at_ms=min(engaged, default=None),
        delivery_count=sum(row.delivery_count for row in owed),
    )


def refuse(tick: Tick, source: NodeId, event: EventId, error: str) -> None:
    """Emit a refusal: this attempt will never be engaged here."""
    tell(tick, source, Ack(ref=event, status=AckStatus.PROCESSED, outcome=Outcome.REFUSED, error=error))


def repeat(tick: Tick, row: Received) -> None:
    """Say again what was said of a row: the same ACK events, each as its next attempt.

    What this very tick has said is on its way and not repeated, and one tick repeats the ACKs of an event
    once: in an outbox (event id, attempt) is unique.
    """
    if (row.source, row.event_id) in tick.repeated:
        return
    tick.repeated.add((row.source, row.event_id))
    latest: dict[EventId, Event] = {}
    promise: EventId | None = None
    for entry in tick.store.events_about(row.event_id):
        event = decode_event(entry.body)
        told = event.kind == Kind.ACK and names(decode_header(entry.header), row.source)
        if not told or not _holds(row, ack := decode_payload(event, Ack)):
            continue
        if ack.promises and event.event_id not in latest:
            latest.pop(promise or event.event_id, None)  # what an agent expected before it expects no more
            promise = event.event_id
        latest[event.event_id] = event
    if not latest and (row.source, row.event_id) not in tick.said:
        _say_anew(tick, row)
    for event in latest.values():
        trace = replace(
            event.trace,
            attempt=event.trace.attempt + 1,
            first_position=tick.store.first_position(event.event_id),
        )
        tick.emit(replace(event, trace=trace), (row.source,))


def _say_anew(tick: Tick, row: Received) -> None:
    """The ACKs were forgotten with the outbox below its floor, but the row was not."""
    accept(tick, row)
    if row.state is TurnState.DONE and row.kind in PROCESSED:
        process(tick, row)


def cut(error: str | None) -> str | None:
    """An error as short as it has to be to go into an ACK, whoever wrote it."""
    return error if error is None else error[:ERROR_CHARS_MAX]


def _holds(row: Received, ack: Ack) -> bool:
    """Whether an ACK speaks of the row and not of an attempt that was refused before there was one."""
    if ack.status is AckStatus.ACCEPTED:
        return True
    return row.state is TurnState.DONE and (ack.outcome, ack.error) == (row.outcome, row.error)


def tell(tick: Tick, to: NodeId, ack: Ack) -> None:
    """Emit an ACK to the node that sent the event."""
    event = Event(
        event_id=tick.entropy.event_id(tick.now.wall_ms),
        kind=_ACK,
        source_node_id=tick.identity.node,
        corr_id=ack.ref,
        created_at=tick.stamp,
        payload=encode_payload(ack),
    )
    tick.said.add((to, ack.ref))
    tick.emit(event, (to,))
