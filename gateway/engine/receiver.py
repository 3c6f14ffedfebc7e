"""The receiver's side: what other outboxes bring, and what is owed in return.

Everything about one page happens in one transaction: ledger and inbox rows, the ACKs in the own outbox, the
cursor. So ``accepted`` is never seen before its row is on disk.
"""

from gateway.engine import acks
from gateway.engine.effects import CursorMoved, StreamBroken
from gateway.engine.inputs import PageRead
from gateway.engine.sender import on_ack, on_reply
from gateway.engine.tick import Arrived, Tick
from gateway.engine.turns import Turns
from outbox.chain import Entry, follow, genesis
from outbox.envelope import (
    EVERYONE,
    Ack,
    DeadLetter,
    Signal,
    agrees,
    decode_event,
    decode_header,
    decode_payload,
)
from outbox.errors import BrokenChain, CallerError
from outbox.ids import Epoch, NodeId
from outbox.kinds import Kind, known_kind
from outbox.records import Quarantined, Received, TurnState
from outbox.timestamps import parse_rfc3339

QUARANTINED = "quarantined"


def read_page(tick: Tick, turns: Turns, read: PageRead) -> None:
    """Handle a page of another node's outbox, or report that it does not follow on."""
    page = read.page
    known = tick.store.cursor(read.node)
    start = known if known is not None else genesis(tick.identity.mesh, read.node, page.epoch)
    if page.epoch == start.epoch and page.checkpoint.seq <= start.seq:
        return
    try:
        reached = follow(start, page)
    except BrokenChain as error:
        tick.effects.append(StreamBroken(read.node, error.code, str(error)))
        return
    for entry in page.entries:
        _entry(tick, turns, read.node, page.epoch, entry)
    tick.store.put_cursor(read.node, reached)
    tick.effects.append(CursorMoved(read.node, reached))


def _entry(tick: Tick, turns: Turns, source: NodeId, epoch: Epoch, entry: Entry) -> None:
    try:
        header = decode_header(entry.header)
        event = decode_event(entry.body)
    except CallerError as error:
        _quarantine(tick, source, epoch, entry, str(error))
        return
    if not agrees(header, event, entry.body) or event.source_node_id != source:
        _quarantine(tick, source, epoch, entry, "header, body and stream disagree")
    elif header.to == EVERYONE or tick.identity.node in header.to:
        arrive(tick, turns, Arrived(source, epoch, entry, header, event))


def arrive(tick: Tick, turns: Turns, arrived: Arrived) -> None:
    """Act on an event that names this node: from another outbox or from our own."""
    kind = known_kind(arrived.event.kind)
    try:
        match kind:
            case Kind.MESSAGE | Kind.REPLY:
                _deliverable(tick, turns, arrived)
            case Kind.ACK:
                on_ack(tick, arrived.source, decode_payload(arrived.event, Ack))
            case Kind.DEAD_LETTER:
                turns.cancel(tick, arrived.source, decode_payload(arrived.event, DeadLetter).ref)
            case Kind.SIGNAL:
                _signal(tick, arrived.source, decode_payload(arrived.event, Signal))
            case None:
                pass  # of a newer version: carried and stored, never engaged
    except CallerError as error:
        _quarantine_arrived(tick, arrived, str(error))


def _deliverable(tick: Tick, turns: Turns, arrived: Arrived) -> None:
    event, source = arrived.event, arrived.source
    if event.to_agent_id is None or event.source_agent_id is None:
        _quarantine_arrived(tick, arrived, "a deliverable event needs both agents")
        return
    if event.kind == Kind.REPLY and event.corr_id is not None:
        on_reply(tick, source, event.corr_id)
    row = tick.store.received(event.event_id)
    if row is not None:
        if row.source == source:
            _repeat(tick, row)
        else:
            _quarantine_arrived(tick, arrived, f"the event id came before from {row.source}")
        return
    if not turns.lives_here(event.to_agent_id):
        acks.refuse(tick, arrived.source, arrived.event.event_id, "not_owner")
    elif (owner := tick.view.owner(event.source_agent_id)) is None:
        _accept(tick, turns, arrived, TurnState.HELD)
    elif owner.node == source or owner.owner_epoch < event.trace.source_owner_epoch:
        state = TurnState.QUEUED if owner.node == source else TurnState.HELD
        _accept(tick, turns, arrived, state)
    elif event.trace.source_owner_epoch < owner.owner_epoch:
        _accept(tick, turns, arrived, TurnState.QUEUED)  # sent before its agent moved on
    else:
        _quarantine_arrived(tick, arrived, f"{event.source_agent_id} is owned by {owner.node}")
        acks.refuse(tick, arrived.source, arrived.event.event_id, "foreign_agent")


def _accept(tick: Tick, turns: Turns, arrived: Arrived, state: TurnState) -> None:
    event = arrived.event
    assert event.to_agent_id is not None
    if not turns.has_room(event.to_agent_id, event.priority):
        acks.refuse(tick, arrived.source, arrived.event.event_id, "inbox_full")
        return
    expires_at_ms = parse_rfc3339(event.expires_at) if event.expires_at else 1 << 53
    row = Received(
        event_id=event.event_id,
        source=arrived.source,
        epoch=arrived.epoch,
        seq=arrived.entry.seq,
        kind=event.kind,
        to_agent=event.to_agent_id,
        body=arrived.entry.body,
        state=state,
        priority=event.priority,
        accepted_at_ms=tick.now.wall_ms,
        expires_at_ms=expires_at_ms,
    )
    tick.store.put_received(row)
    acks.accept(tick, row)
    turns.take(row, event, tick.now)


def _repeat(tick: Tick, row: Received) -> None:
    """The sender asks again: say again what was said, do nothing again."""
    acks.accept(tick, row)
    if row.state is TurnState.DONE and row.kind == Kind.MESSAGE:
        acks.process(tick, row)


def _signal(tick: Tick, source: NodeId, signal: Signal) -> None:
    if signal.signal != "status_request" or signal.ref is None:
        return
    row = tick.store.received(signal.ref)
    if row is not None and row.source == source:
        _repeat(tick, row)


def _quarantine_arrived(tick: Tick, arrived: Arrived, reason: str) -> None:
    _quarantine(tick, arrived.source, arrived.epoch, arrived.entry, reason)


def _quarantine(tick: Tick, source: NodeId, epoch: Epoch, entry: Entry, reason: str) -> None:
    row = Quarantined(
        source=source, epoch=epoch, seq=entry.seq, reason=reason, header=entry.header, body=entry.body
    )
    tick.store.quarantine(row)
    tick.open_incident(QUARANTINED, f"{source}/{epoch}/{entry.seq}", reason)
