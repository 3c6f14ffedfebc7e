"""The receiver's side: what the entries of other outboxes do here, and what is owed in return.

Everything about one page happens in one transaction: ledger and inbox rows, the ACKs in the own outbox, the
cursor. So ``accepted`` is never seen before its row is on disk. Following the stream is in ``streams``.
"""

from collections.abc import Sequence
from contextlib import suppress

from gateway.engine import acceptances, acks, firstreply, inquiries, ledgerfloors, recall, signals, telling
from gateway.engine.deliveries import on_ack, on_reply
from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.maintenance import MAINTENANCE, hear_maintenance
from gateway.engine.own_stream import Reason
from gateway.engine.residents import Residents
from gateway.engine.tick import Arrived, Stream, Tick
from gateway.engine.turns import Turns
from gateway.routing import Standing, standing
from outbox.chain import Entry, Stub
from outbox.delivery import INBOX_FULL
from outbox.envelope import (
    Ack,
    DeadLetter,
    Event,
    Header,
    Signal,
    agrees,
    decode_event,
    decode_header,
    decode_payload,
)
from outbox.errors import CallerError, InvalidEvent
from outbox.ids import AgentId, Epoch, EventId, NodeId, event_id
from outbox.kinds import RULES, Kind, Outcome
from outbox.limits import EXPIRES_IN_MS_DEFAULT, JSON_DEPTH_MAX
from outbox.nesting import is_deeper
from outbox.readership import names
from outbox.recall import RECALL, RECALLED, STREAM_EPOCH, StreamEpoch
from outbox.records import Delivery, Quarantined, Received, Share, TurnState
from outbox.timestamps import LATEST_MS, parse_rfc3339

QUARANTINED = "quarantined"
# Looked up once: before Python 3.12 that of a member of an enum is slow.
_REPLY, _SOLE, _QUEUED = Kind.REPLY, Share.SOLE, TurnState.QUEUED
_FOREIGN, _UNKNOWN = Standing.FOREIGN, Standing.UNKNOWN

_DELIVERABLE = frozenset(kind for kind, rule in RULES.items() if rule.accepted)


def take_entry(tick: Tick, residents: Residents, turns: Turns, stream: Stream, entry: Entry) -> None:
    """Act on one entry of another outbox, if it names this node; keep what is no event."""
    source, epoch = stream.source, stream.epoch
    try:
        if is_deeper(entry.header, JSON_DEPTH_MAX) or is_deeper(entry.body, JSON_DEPTH_MAX):
            raise InvalidEvent(f"not an event: nested deeper than {JSON_DEPTH_MAX}")
        header = decode_header(entry.header)
        event = decode_event(entry.body)
    except CallerError as error:
        _quarantine(tick, source, epoch, entry, str(error))
        return
    if not agrees(header, event, entry.body) or event.source_node_id != source:
        _quarantine(tick, source, epoch, entry, "header, body and stream disagree")
    elif names(header, tick.identity.node):
        arrive(tick, residents, turns, Arrived(source, epoch, entry, event))
    else:
        _went_elsewhere(tick, turns, source, header)


def overhear(tick: Tick, turns: Turns, source: NodeId, stub: Stub) -> None:
    """Look at the header of an entry that names others; whether it tells the truth they will see."""
    with suppress(InvalidEvent):  # what cannot be read takes nothing back
        _went_elsewhere(tick, turns, source, decode_header(stub.header))


def _went_elsewhere(tick: Tick, turns: Turns, source: NodeId, header: Header) -> None:
    """A later attempt of what was accepted here is for another node: it is engaged there."""
    if header.attempt > 1 and header.kind in _DELIVERABLE:
        turns.supersede(tick, source, header.event_id)
        if header.kind == Kind.REPLY:
            _note_dealt_here(tick, source, header)
        elif tick.store.ended_epochs():
            _say_done_here(tick, source, header)


def _say_done_here(tick: Tick, source: NodeId, header: Header) -> None:
    """Nobody has to have read an epoch that has ended: what was said there of work done is said again."""
    rows = tick.store.turns_of(source, header.event_id)
    done = any(row.state is TurnState.DONE and row.delivery_count and row.share is Share.SOLE for row in rows)
    if done and not names(header, tick.identity.node):
        acks.repeat(tick, acks.combined(rows))


def _note_dealt_here(tick: Tick, source: NodeId, header: Header) -> None:
    """Of a message its sender hears who did it; a reply has no such answer, so who had it says so itself."""
    rows = tick.store.turns_of(source, header.event_id)
    dealt = [row for row in rows if row.delivery_count and row.share is Share.SOLE]
    if dealt and not names(header, tick.identity.node):
        detail = f"{dealt[0].to_agent} had it here before it went to another node as well"
        tick.note_incident(POSSIBLE_DUPLICATE, header.event_id, detail)


def arrive(tick: Tick, residents: Residents, turns: Turns, arrived: Arrived) -> None:
    """Act on an event that names this node: from another outbox or from our own."""
    act = _ACTS.get(arrived.event.kind)
    if act is None:
        return  # of a newer version: carried and stored, never engaged
    try:
        act(tick, residents, turns, arrived)
    except CallerError as error:
        _quarantine_arrived(tick, arrived, str(error))


def _deliverable(tick: Tick, residents: Residents, turns: Turns, arrived: Arrived) -> None:
    event, source = arrived.event, arrived.source
    if event.source_agent_id is None:
        _quarantine_arrived(tick, arrived, "a deliverable event needs an agent that sent it")
        return
    rows = _known(tick, arrived)
    is_reply = event.kind == _REPLY
    question = tick.store.delivery(event.corr_id, source) if is_reply and event.corr_id is not None else None
    if rows:
        acks.repeat(tick, acks.combined(rows))  # the sender asks again: nothing is done twice
    elif _is_forgotten(tick, arrived) or (
        is_reply and question is None and firstreply.comes_too_late(tick, residents, event)
    ):
        acks.refuse(tick, source, event.event_id, "below_floor")  # so may be what was done with it here
    elif (speaks := _standing(tick, arrived, event.source_agent_id)) is _FOREIGN:
        _quarantine_arrived(tick, arrived, f"{event.source_agent_id} is not owned by {source}")
        acks.refuse(tick, source, event.event_id, "foreign_agent")
    else:
        contested = is_reply and on_reply(tick, source, event, question)
        asked = firstreply.asked(tick, source, event) if contested else None
        _take(tick, residents, turns, arrived, asked, held=speaks is _UNKNOWN)


def _known(tick: Tick, arrived: Arrived) -> list[Received]:
    event = arrived.event
    if event.to_agent_id is None:
        return tick.store.turns_of(arrived.source, event.event_id)
    row = tick.store.received(arrived.source, event.event_id, event.to_agent_id)
    return [] if row is None else [row]


def _is_forgotten(tick: Tick, arrived: Arrived) -> bool:
    """Whether the event has ended for its sender, which has forgotten it, or had before it went back."""
    source, first = arrived.source, arrived.event.trace.first_position
    if source == tick.identity.node:
        return False  # who forgets an own event sends it no more
    if first is not None and ledgerfloors.is_gone(tick, source, *first):
        return True
    epoch, seq = first or (arrived.epoch, arrived.entry.seq)
    return ledgerfloors.has_forgotten(tick, source, epoch, seq, read=arrived.epoch)


def _standing(tick: Tick, arrived: Arrived, agent: AgentId) -> Standing:
    if arrived.source == tick.identity.node:
        return Standing.OWNER  # the agent was authenticated here, whether or not the room knows it yet
    return standing(tick.view, agent, arrived.source, arrived.event.trace.source_owner_epoch)


def _take(
    tick: Tick, residents: Residents, turns: Turns, arrived: Arrived, asked: Delivery | None, *, held: bool
) -> None:
    """Accept an event for those of its recipients that are here and have room; refuse it if none has.

    ``asked`` is the row of the node whose reply it is, where another one may answer too.
    """
    event = arrived.event
    here = residents.recipients(tick, event)
    if not here:
        refusal = "not_owner" if event.to_agent_id is not None else "no_recipient"
        acks.refuse(tick, arrived.source, event.event_id, refusal)
        return
    if asked is not None and not held and firstreply.is_second(tick, asked):
        _set_aside(tick, turns, arrived, here)
        return
    if not any(turns.has_room(agent, event.priority, held=held) for agent in here):
        acks.refuse(tick, arrived.source, event.event_id, INBOX_FULL)
        for agent in here:
            turns.refuse(tick, agent, event.event_id)
        return
    rows = [_row(tick, arrived, agent, held=held) for agent in here]
    for row in rows:
        tick.store.put_received(row)
    acks.accept(tick, rows[0])
    if asked is not None:
        firstreply.note(tick, asked, event)
    if arrived.source == tick.identity.node and _is_older(event, tick.identity.epoch):
        recall.suspect(tick, event.event_id)  # it was sent on to here, perhaps not for the first time
    for row in rows:
        if len(rows) == 1 or turns.has_room(row.to_agent, event.priority, held=held):
            turns.take(tick, row, event)
        else:
            turns.refuse(tick, row.to_agent, event.event_id)
            turns.turn_away(tick, row, INBOX_FULL)


def _is_older(event: Event, epoch: Epoch) -> bool:
    """Whether an own event was sent in an epoch that has ended."""
    return event.trace.first_position is not None and event.trace.first_position[0] != epoch


def _set_aside(tick: Tick, turns: Turns, arrived: Arrived, here: Sequence[AgentId]) -> None:
    """Its agent has another node's answer already: this one is in the inbox to be looked at, and no turn."""
    rows = [_row(tick, arrived, agent, held=False) for agent in here]
    acks.accept(tick, rows[0])
    for row in rows:
        turns.turn_away(tick, row, firstreply.SUPERSEDED, Outcome.REFUSED)


def _row(tick: Tick, arrived: Arrived, agent: AgentId, *, held: bool) -> Received:
    event = arrived.event
    return Received(
        event_id=event.event_id,
        source=arrived.source,
        epoch=arrived.epoch,
        seq=arrived.entry.seq,
        kind=event.kind,
        to_agent=agent,
        body=arrived.entry.body,
        state=TurnState.HELD if held else _QUEUED,
        priority=event.priority,
        accepted_at_ms=tick.now.wall_ms,
        expires_at_ms=_expires_at_ms(event),
        via=tick.via,
        share=_share(event),
        blob=event.payload_ref.sha256 if event.payload_ref is not None else None,
    )


def _share(event: Event) -> Share:
    if event.to_agent_id is not None:
        return _SOLE
    return Share.ONE_OF_SEVERAL if event.to_agents else Share.EVERYONE


def _expires_at_ms(event: Event) -> int:
    if event.expires_at is not None:
        return parse_rfc3339(event.expires_at)
    return min(LATEST_MS, parse_rfc3339(event.created_at) + EXPIRES_IN_MS_DEFAULT)


def _ack(tick: Tick, _residents: Residents, _turns: Turns, arrived: Arrived) -> None:
    ack = decode_payload(arrived.event, Ack)
    _check_ref(arrived.event, ack.ref)
    on_ack(tick, arrived.source, ack, (arrived.epoch, arrived.entry.seq), arrived.event.event_id)


def _dead_letter(tick: Tick, _residents: Residents, turns: Turns, arrived: Arrived) -> None:
    letter = decode_payload(arrived.event, DeadLetter)
    _check_ref(arrived.event, letter.ref)
    turns.cancel(tick, arrived.source, letter.ref)


def _check_ref(event: Event, ref: EventId) -> None:
    if ref != event.corr_id:
        raise InvalidEvent("ref and corrId name two events")


def _signal(tick: Tick, _residents: Residents, turns: Turns, arrived: Arrived) -> None:
    signal = decode_payload(arrived.event, Signal)
    if signal.incident is not None and signal.signal == signals.INCIDENT:
        _incident(tick, arrived, signal)
    elif signal.signal == RECALL:
        telling.answer(tick, arrived)
    elif signal.signal == RECALLED:
        recall.hear(tick, turns, arrived)
    elif signal.signal == STREAM_EPOCH:
        said = decode_payload(arrived.event, StreamEpoch)
        began = (arrived.event.trace.first_position or (arrived.epoch,))[0]  # it may have been said again
        history = said.remembered or ((said.previous, said.last_known),)
        acceptances.begin(tick, arrived.source, history, began)
        ledgerfloors.on_new_epoch(tick, arrived.source, history, began)
        _ask_if_passed(tick, turns, arrived, said)
    elif signal.maintenance is not None and signal.signal == MAINTENANCE:
        hear_maintenance(tick, arrived.source, signal.maintenance)
    elif signal.signal == inquiries.STATUS_REQUEST and signal.ref is not None:
        inquiries.answer(tick, arrived.source, event_id(signal.ref))
    elif signal.signal == inquiries.STATUS_UNKNOWN and signal.ref is not None:
        inquiries.hear_unknown(tick, arrived.source, event_id(signal.ref))


def _ask_if_passed(tick: Tick, turns: Turns, arrived: Arrived, said: StreamEpoch) -> None:
    """Who had not read the epoch before to its end reads that no more. It is said first in an epoch.

    Who has may have read another history of it, when its writer did not know what it had forgotten.
    """
    if arrived.entry.seq > 1:
        return
    known = tick.store.cursor(arrived.source)
    passed = known is None or known.epoch != said.previous or known.seq < said.last_known
    if passed or said.reason == Reason.ROLLBACK:
        inquiries.ask_open(tick, arrived.source)
        _note_passed(tick, turns, arrived.source)


def _note_passed(tick: Tick, turns: Turns, source: NodeId) -> None:
    """What was not read may have said that a reply which an agent has in hand went to its fallback too."""
    found = (tick.view.owner(agent) for agent in tick.view.agents)
    agents = [owner.agent for owner in found if owner is not None and owner.fallback]
    for row in (row for agent in agents for row in turns.dealt(tick, source, agent)):
        if row.kind == Kind.REPLY:
            detail = f"{row.to_agent} has it; whether it went to another node as well was passed unread"
            tick.note_incident(POSSIBLE_DUPLICATE, row.event_id, detail)


def _incident(tick: Tick, arrived: Arrived, signal: Signal) -> None:
    agent = arrived.event.source_agent_id
    if agent is None or _standing(tick, arrived, agent) is Standing.FOREIGN:
        _quarantine_arrived(tick, arrived, f"{agent} is not owned by {arrived.source}")
    else:
        signals.hear_incident(tick, arrived.source, signal)


def _quarantine_arrived(tick: Tick, arrived: Arrived, reason: str) -> None:
    _quarantine(tick, arrived.source, arrived.epoch, arrived.entry, reason)


def _quarantine(tick: Tick, source: NodeId, epoch: Epoch, entry: Entry, reason: str) -> None:
    row = Quarantined(
        source=source, epoch=epoch, seq=entry.seq, reason=reason, header=entry.header, body=entry.body
    )
    tick.store.quarantine(row)
    tick.open_incident(QUARANTINED, f"{source}/{epoch}/{entry.seq}", reason)


_ACTS = {
    str(kind): act
    for kind, act in (
        (Kind.MESSAGE, _deliverable),
        (Kind.REPLY, _deliverable),
        (Kind.ACK, _ack),
        (Kind.DEAD_LETTER, _dead_letter),
        (Kind.SIGNAL, _signal),
    )
}
"""What an event of each kind does here."""
