"""Where is event X, asked of a node that only carries it? A seed's verified copies tell, step by step.

Each step is an entry that its node signed. What others say of an event counts for nothing: an ACK or a reply
tells of the node that it came from only when the event went there.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gateway.api.rows import readable_event
from gateway.api.trace import RANK, EventTrace, Stage, Step
from outbox.chain import Entry
from outbox.envelope import EVERYONE, Ack, DeadLetter, Event, decode_header, decode_payload
from outbox.errors import InvalidEvent
from outbox.ids import Epoch, EventId, NodeId, Seq
from outbox.kinds import AckStatus, Kind
from outbox.timestamps import parse_rfc3339
from outbox.traceparent import readable_traceparent


class Told(NamedTuple):
    """One entry of a copy."""

    node: NodeId
    """Whose outbox it stands in."""
    epoch: Epoch
    seq: Seq
    event: Event
    to: Sequence[NodeId] | str


def told(node: NodeId, epoch: Epoch, entry: Entry) -> Told | None:
    """What an entry says; None when it is no event, or speaks for another node."""
    try:
        header, event = decode_header(entry.header), readable_event(entry.body or b"")
    except InvalidEvent:
        return None
    if event.source_node_id != node or event.event_id != header.event_id:
        return None
    return Told(node, epoch, entry.seq, event, header.to)


def carried(here: NodeId, event: EventId, entries: Iterable[Told]) -> EventTrace | None:
    """The trace of an event from what copies say of it, in any order; None when they do not have it."""
    found = sorted(entries, key=lambda each: (each.node, each.epoch, each.seq))
    attempts = [each for each in found if each.event.event_id == event]
    attempts = [each for each in attempts if each.node == attempts[0].node]
    if not attempts:
        return None
    first = attempts[0]
    answers = [each for each in found if each.event.corr_id == event and _counts(each, first, attempts)]
    steps = _first_of_each(step for each in answers for step in _steps(each))
    nodes = {NodeId(node) for each in attempts if each.to != EVERYONE for node in each.to}
    return EventTrace(
        event_id=event,
        kind=first.event.kind,
        from_agent=first.event.source_agent_id,
        from_node=first.node,
        to_agent=first.event.to_agent_id,
        to_agents=first.event.to_agents,
        to_node=min(nodes) if len(nodes) == 1 else None,
        thread_id=first.event.thread_id,
        corr_id=first.event.corr_id,
        type=first.event.type,
        schema=first.event.schema,
        traceparent=readable_traceparent(first.event.trace.traceparent),
        told_by=here,
        carried=True,
        state=max((step.stage for step in steps), key=lambda stage: RANK[stage], default=Stage.EMITTED),
        steps=(*(_attempt(each) for each in attempts), *steps),
    )


def _counts(each: Told, first: Told, attempts: Sequence[Told]) -> bool:
    """Whether its node may say so: the sender gives up, and who was asked answers."""
    if each.event.kind == Kind.DEAD_LETTER:
        return each.node == first.node
    return any(attempt.to == EVERYONE or each.node in attempt.to for attempt in attempts)


def _attempt(each: Told) -> Step:
    """A later attempt has the first one's bytes, but for its number: when it was written stands nowhere."""
    attempt, made = each.event.trace.attempt, _step(Stage.EMITTED, each)
    return replace(made, event_id=None, attempt=attempt, at_ms=made.at_ms if attempt == 1 else None)


def _steps(each: Told) -> list[Step]:
    """What an entry tells; a payload that is none tells nothing."""
    try:
        match each.event.kind:
            case Kind.REPLY:
                return [_step(Stage.REPLIED, each)]
            case Kind.DEAD_LETTER:
                reason = decode_payload(each.event, DeadLetter).reason
                return [replace(_step(Stage.DEAD_LETTER, each), error=reason)]
            case Kind.ACK:
                return _acknowledged(each, decode_payload(each.event, Ack))
            case _:
                return []
    except InvalidEvent:
        return []


def _acknowledged(each: Told, ack: Ack) -> list[Step]:
    if ack.status is AckStatus.ACCEPTED:
        return [_step(Stage.ACCEPTED, each)]
    steps = [replace(_step(Stage.PROCESSED, each), outcome=ack.outcome, error=ack.error)]
    if ack.engaged_at is not None:
        at_ms, node = parse_rfc3339(ack.engaged_at), each.node
        times = ack.deliveries or None
        steps.append(Step(stage=Stage.ENGAGED, at_ms=at_ms, clock=node, node=node, deliveries=times))
    return steps


def _step(stage: Stage, each: Told) -> Step:
    return Step(
        stage=stage,
        at_ms=parse_rfc3339(each.event.created_at),
        clock=each.node,
        node=each.node,
        epoch=each.epoch,
        seq=each.seq,
        event_id=each.event.event_id,
    )


def _first_of_each(steps: Iterable[Step]) -> list[Step]:
    """Said again, it is the same step; clocks of two machines differ, so stages give the order."""
    found: dict[tuple[Stage, NodeId], Step] = {}
    for step in steps:
        found.setdefault((step.stage, step.node), step)
    return sorted(found.values(), key=lambda step: (RANK[step.stage], step.node))
