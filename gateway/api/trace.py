"""Where is event X? Everything that one node knows about it, as steps with times.

A node knows its own outbox (with positions), its delivery row if it sent the event, and its ledger row if the
event came for one of its agents. Each step names the node where it happened and the node whose clock wrote
its time: clocks of two machines differ, so steps are never ordered by comparing them. Attempts come first, in
the order of the outbox; the rest follows by this node's clock, and an engagement that another clock wrote
stands before the end that reported it.
"""

from enum import StrEnum

import msgspec

from gateway.api.rows import turn_state
from outbox.delivery import standing
from outbox.envelope import Ack, DeadLetter, Event, decode_payload
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, Identity, Received, TurnState
from outbox.timestamps import parse_rfc3339
from outbox.traceparent import readable_traceparent


class Stage(StrEnum):
    """What happened, in the order in which it must happen."""

    EMITTED = "emitted"
    ACCEPTED = "accepted"
    ENGAGED = "engaged"
    REPLIED = "replied"
    PROCESSED = "processed"
    DEAD_LETTER = "dead_letter"


RANK = {stage: rank for rank, stage in enumerate(Stage)}


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One thing that happened."""

    stage: Stage
    at_ms: int | None = None
    """Milliseconds since 1970 by ``clock``; None for a middle attempt, whose time is not kept."""
    clock: NodeId
    """Whose clock wrote the time."""
    node: NodeId
    """Where it happened."""
    epoch: Epoch | None = None
    seq: Seq | None = None
    """Position in the outbox of ``node``, if it is known here."""
    event_id: EventId | None = None
    """The ACK, reply or dead letter that says so, if it stands in the own outbox."""
    attempt: int | None = None
    deliveries: int | None = None
    """How many times the agent was handed the event."""
    outcome: Outcome | None = None
    error: str | None = None
    via: NodeId | None = None
    """The relay that brought the news of it here, when its writer did not."""
    eta_at_ms: int | None = None
    """Of ``accepted``: when the agent expects to be done, as it said last; by the clock of ``node``."""
    plan_summary: str | None = None
    """Of ``accepted``: what the agent is about to do."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What one node knows about an event, as it lies in its journal."""

    identity: Identity
    event: Event
    own: tuple[tuple[Seq, Event], ...]
    """Entries of the own outbox that are the event or refer to it, in order."""
    deliveries: tuple[tuple[Delivery, str], ...]
    """Its obligations, if it is an own event, in the order of their attempts; each with the state to show."""
    received: tuple[Received, ...]
    """The turns of local agents that it came for, in the order of their acceptance."""
    blob_missing: bool = False
    """It names a blob that is not here."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one node owes, or owed, for an own event that went to several: the answers of all of them."""

    node: NodeId | None
    state: str
    attempt: int
    outcome: Outcome | None = None
    error: str | None = None


class EventTrace(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The answer."""

    event_id: EventId
    kind: str
    from_agent: AgentId | None
    from_node: NodeId
    to_agent: AgentId | None
    to_agents: tuple[AgentId, ...] = ()
    """Of an event to several; with neither it is for all agents of the nodes it goes to."""
    to_node: NodeId | None
    thread_id: str | None
    corr_id: EventId | None = None
    type: str | None = None
    schema: str | None = None
    traceparent: str | None = None
    told_by: NodeId
    """The node whose knowledge this is."""
    carried: bool = False
    """It came from nobody of that node and for nobody: its copies of other outboxes tell."""
    state: str
    """Of an event that went to several nodes: how the least advanced stands; ``receipts`` has all."""
    receipts: tuple[Receipt, ...] = ()
    steps: tuple[Step, ...]


def assemble(known: Known) -> EventTrace:
    """Put the steps in order."""
    event, here = known.event, known.identity.node
    attempts = _attempts(known)
    answers = [*_receiver(known), *_sender(known)]
    answers.sort(key=lambda pair: (pair[0], RANK[pair[1].stage]))
    row = standing([row for row, _ in known.deliveries])
    to_node = row.node if row is not None else here
    states = [state for each, state in known.deliveries if each is row] or [
        turn_state(turn, blob_missing=known.blob_missing) for turn in known.received
    ]
    return EventTrace(
        event_id=event.event_id,
        kind=event.kind,
        from_agent=event.source_agent_id,
        from_node=event.source_node_id,
        to_agent=event.to_agent_id,
        to_agents=event.to_agents,
        to_node=to_node,
        thread_id=event.thread_id,
        corr_id=event.corr_id,
        type=event.type,
        schema=event.schema,
        traceparent=readable_traceparent(event.trace.traceparent),
        told_by=here,
        state=states[0] if states else "emitted",
        receipts=_receipts(known),
        steps=(*attempts, *(step for _, step in answers)),
    )


def _receipts(known: Known) -> tuple[Receipt, ...]:
    if len(known.deliveries) < 2:
        return ()
    return tuple(
        Receipt(node=row.node, state=state, attempt=row.attempt, outcome=row.outcome, error=row.error)
        for row, state in known.deliveries
    )


def _attempts(known: Known) -> list[Step]:
    event, who = known.event, known.identity
    received = known.received[0] if known.received else None
    if event.source_node_id == who.node:
        own = [(seq, entry) for seq, entry in known.own if entry.event_id == event.event_id]
        return [_attempt(known, seq, entry.trace.attempt) for seq, entry in own]
    if received is None:
        return []
    return [
        Step(
            stage=Stage.EMITTED,
            at_ms=parse_rfc3339(event.created_at),
            clock=received.source,
            node=received.source,
            epoch=received.epoch,
            seq=received.seq,
            attempt=event.trace.attempt,
            via=received.via,
        )
    ]


def _attempt(known: Known, seq: Seq, attempt: int) -> Step:
    who = known.identity
    at_ms = parse_rfc3339(known.event.created_at) if attempt == 1 else None
    for row, _ in known.deliveries:
        if row.attempt == attempt > 1:
            at_ms = row.emitted_at_ms
    return Step(
        stage=Stage.EMITTED,
        at_ms=at_ms,
        clock=who.node,
        node=who.node,
        epoch=who.epoch,
        seq=seq,
        attempt=attempt,
    )


def _sender(known: Known) -> list[tuple[int, Step]]:
    """What the delivery rows say; on one node the receiver's own rows say the same, and better."""
    here = known.identity.node
    steps: list[tuple[int, Step]] = []
    letters = _entries(known, Kind.DEAD_LETTER, None)
    for row, _ in known.deliveries:
        if row.node is not None and not (row.node == here and known.received):
            steps += _answers(row, row.node, here)
        if row.dead_at_ms is not None and letters:
            letter = letters.pop(0)
            step = _own(known, Stage.DEAD_LETTER, row.dead_at_ms, letter)
            reason = decode_payload(letter[1], DeadLetter).reason
            steps.append((row.dead_at_ms, msgspec.structs.replace(step, error=reason)))
    return steps


def _answers(row: Delivery, node: NodeId, here: NodeId) -> list[tuple[int, Step]]:
    steps: list[tuple[int, Step]] = []
    if row.accepted_at_ms is not None:
        at_ms = row.accepted_at_ms
        accepted = Step(
            stage=Stage.ACCEPTED,
            at_ms=at_ms,
            clock=here,
            node=node,
            via=row.via,
            eta_at_ms=row.eta_at_ms,
            plan_summary=row.plan_summary,
        )
        steps.append((at_ms, accepted))
    if row.processed_at_ms is not None:
        at_ms = row.processed_at_ms
        if row.engaged_at_ms is not None:
            engaged = Step(stage=Stage.ENGAGED, at_ms=row.engaged_at_ms, clock=node, node=node)
            steps.append((min(at_ms, row.replied_at_ms or at_ms), engaged))
        processed = Step(
            stage=Stage.PROCESSED,
            at_ms=at_ms,
            clock=here,
            node=node,
            outcome=row.outcome,
            error=row.error,
            via=row.via,
        )
        steps.append((at_ms, processed))
    if row.replied_at_ms is not None:
        at_ms = row.replied_at_ms
        steps.append((at_ms, Step(stage=Stage.REPLIED, at_ms=at_ms, clock=here, node=node, via=row.via)))
    return steps


def _receiver(known: Known) -> list[tuple[int, Step]]:
    return [step for row in known.received for step in _turn(known, row)]


def _turn(known: Known, row: Received) -> list[tuple[int, Step]]:
    here = known.identity.node
    steps = [_said(known, Stage.ACCEPTED, row.accepted_at_ms, AckStatus.ACCEPTED, row)]
    if row.engaged_at_ms is not None:
        at_ms, count = row.engaged_at_ms, row.delivery_count
        engaged = Step(stage=Stage.ENGAGED, at_ms=at_ms, clock=here, node=here, deliveries=count)
        steps.append((at_ms, engaged))
    if row.state is TurnState.DONE and row.done_at_ms is not None:
        steps.append(_said(known, Stage.PROCESSED, row.done_at_ms, AckStatus.PROCESSED, row))
    for seq, event in known.own:
        if event.kind == Kind.REPLY and (event.corr_id, event.source_agent_id) == (
            row.event_id,
            row.to_agent,
        ):
            at_ms = parse_rfc3339(event.created_at)
            steps.append((at_ms, _own(known, Stage.REPLIED, at_ms, (seq, event))))
    return steps


def _said(known: Known, stage: Stage, at_ms: int, status: AckStatus, row: Received) -> tuple[int, Step]:
    """A step of the ledger row, with the ACK that tells the sender; a reply's end is told to nobody."""
    here, acks = known.identity.node, _entries(known, Kind.ACK, status)
    step = Step(stage=stage, at_ms=at_ms, clock=here, node=here)
    if acks:
        step = _own(known, stage, at_ms, acks[0])
    if stage is Stage.ACCEPTED:
        step = _promised(step, [decode_payload(event, Ack) for _, event in acks])
    if stage is Stage.PROCESSED:
        step = msgspec.structs.replace(step, outcome=row.outcome, error=row.error)
    return at_ms, step


def _promised(step: Step, acks: list[Ack]) -> Step:
    """With what the agent said last of its work."""
    said = next((ack for ack in reversed(acks) if ack.promises), None)
    if said is None:
        return step
    eta_at_ms = parse_rfc3339(said.eta_at) if said.eta_at is not None else None
    return msgspec.structs.replace(step, eta_at_ms=eta_at_ms, plan_summary=said.plan_summary)


def _own(known: Known, stage: Stage, at_ms: int, entry: tuple[Seq, Event]) -> Step:
    who, (seq, event) = known.identity, entry
    return Step(
        stage=stage,
        at_ms=at_ms,
        clock=who.node,
        node=who.node,
        epoch=who.epoch,
        seq=seq,
        event_id=event.event_id,
    )


def _entries(known: Known, kind: Kind, status: AckStatus | None) -> list[tuple[Seq, Event]]:
    """The own entries of that kind (and ACK level) about the event."""
    about = [entry for entry in known.own if entry[1].corr_id == known.event.event_id]
    return [entry for entry in about if entry[1].kind == kind and status in {None, _level(entry[1])}]


def _level(event: Event) -> AckStatus | None:
    return decode_payload(event, Ack).status if event.kind == Kind.ACK else None
