"""What a lake of the outboxes can know of a run: what a node forgot is in none of them.

A sender may have read an answer that its writer forgot afterwards; the report cannot. And that a turn was
dealt once more is told by the node that forgot it, in its journal alone.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from gateway.engine.deliveries import TURN_FAILED
from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from gateway.judging.facts import Mesh, NodeFacts
from gateway.judging.pasts import Pasts
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind, Outcome
from outbox.records import Delivery, DeliveryState, Incident

_FAILED = "failed"
_Answers = Mapping[NodeId, Mapping[EventId, set[str]]]
_CLAIMS = (DeliveryState.ACCEPTED, DeliveryState.PROCESSED, DeliveryState.REPLIED)


def as_collected(mesh: Mesh, pasts: Pasts) -> Mesh:
    """The journals without what no outbox shows; the same ones where nobody gave a history up."""
    answers = {node: _answers(mesh[node]) for node in mesh if pasts.of(node)}
    return {node: _without(facts, answers) for node, facts in mesh.items()} if answers else mesh


def _answers(facts: NodeFacts) -> dict[EventId, set[str]]:
    found: dict[EventId, set[str]] = {}
    for entry in facts.outbox:
        if entry.corr_id is None:
            continue
        said = found.setdefault(entry.corr_id, set())
        if entry.kind == Kind.REPLY:
            said.add(DeliveryState.REPLIED)
        elif entry.ends:
            said.add(DeliveryState.PROCESSED)
            if entry.outcome is Outcome.FAILED:
                said.add(_FAILED)
        elif entry.accepts:
            said.add(DeliveryState.ACCEPTED)
    return found


def _without(facts: NodeFacts, answers: _Answers) -> NodeFacts:
    deliveries = {debt: _shown(row, answers) for debt, row in facts.deliveries.items()}
    own = {row.event_id for row in deliveries.values()}
    failed = {
        row.event_id: _has_failed(row, answers)
        for row in deliveries.values()
        if row.node in answers and row.state is not DeliveryState.DEAD_LETTER
    }
    incidents = [
        one
        for one in facts.incidents
        if (one.kind != DUPLICATE_ENGAGEMENT or one.subject in own)
        and (one.kind != TURN_FAILED or failed.get(EventId(one.subject), True))
    ]
    told = {one.subject for one in incidents if one.kind == TURN_FAILED}
    untold = [
        Incident(kind=TURN_FAILED, subject=event, opened_at_ms=0)
        for event, has_failed in failed.items()
        if has_failed and event not in told
    ]
    return replace(facts, deliveries=deliveries, incidents=(*incidents, *untold))


def _has_failed(row: Delivery, answers: _Answers) -> bool:
    """By the end that stands in the outbox: the sender may have read another one before it was forgotten."""
    return row.node is not None and _FAILED in answers[row.node].get(row.event_id, ())


def _shown(row: Delivery, answers: _Answers) -> Delivery:
    """Only so far as the outbox of its node bears it out."""
    if row.node is None or row.node not in answers:
        return row
    if row.state not in _CLAIMS and row.replied_at_ms is None:
        return row
    said = answers[row.node].get(row.event_id, set())
    state = next(
        (state for state in reversed(_CLAIMS) if state in said and _CLAIMS.index(state) <= _reached(row)),
        DeliveryState.EMITTED,
    )
    kept = row.replied_at_ms if DeliveryState.REPLIED in said else None
    return replace(row, state=state if row.state in _CLAIMS else row.state, replied_at_ms=kept)


def _reached(row: Delivery) -> int:
    return _CLAIMS.index(DeliveryState.REPLIED if row.replied_at_ms is not None else row.state)
