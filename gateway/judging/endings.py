"""I4: when a run has come to rest, everything has an end, and both sides tell the same one."""

from collections.abc import Container, Iterator

from gateway.judging.facts import Mesh, NodeFacts
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.pasts import NONE, Pasts, Way
from gateway.judging.turns import Taken, taken
from gateway.judging.witness import Account
from outbox.delivery import settled
from outbox.ids import AgentId, EventId, NodeId
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState, TurnState


def check_settlements(mesh: Mesh, account: Account, pasts: Pasts = NONE) -> Iterator[Fault]:
    """The end of a turn that an agent was told of is in the ledger, or in one that was given up later."""
    done = {turn for facts in mesh.values() for turn in _done(facts)}
    gave_up = [(past.order, _done(past.lost)) for past in pasts.all if past.way is not Way.CLONE]
    forgetful = any(facts.has_forgotten for facts in mesh.values())
    for end in account.settlements:
        turn = (end.event_id, end.agent)
        forgotten = any(turn in ended and end.order < order for order, ended in gave_up)
        if turn not in done and not forgotten and not forgetful:
            yield Fault(FaultKind.LOST, end.event_id, f"{end.agent} was told that it is over")


def _done(facts: NodeFacts) -> set[tuple[EventId, AgentId]]:
    return {(turn.event, turn.agent) for turn, row in facts.received.items() if row.state is TurnState.DONE}


def check_agreement(mesh: Mesh, may_expire: Container[EventId] = (), pasts: Pasts = NONE) -> Iterator[Fault]:
    """Every delivery ended, as a dead letter only where it was meant to expire, and as its receiver says.

    A receiver that forgot the end of a turn may have dealt it again: the two ends need not be the same. Of
    one that ran twice a sender may have the reply alone: it has what it needs and does not ask for the ACK.
    """
    there = {node: taken(facts) for node, facts in mesh.items()}
    for node, facts in mesh.items():
        for row in facts.deliveries.values():
            event = row.event_id
            if row.state is DeliveryState.DEAD_LETTER and event in may_expire and row.error == "expired":
                continue
            if not settled(Kind(row.kind), row.state) or row.state is DeliveryState.DEAD_LETTER:
                detail = f"{row.kind} to {row.to_agent} is {row.state}: {row.error}"
                yield Fault(FaultKind.LOST, event, detail)
            else:
                at_receiver = there.get(row.node, {}) if row.node is not None else {}
                twice = _may_differ(row, node, pasts)
                yield from _disagreement(row, at_receiver.get((node, event)), twice=twice)


def _may_differ(row: Delivery, sender: NodeId, pasts: Pasts) -> bool:
    """Whether an end was forgotten, or stands in the one of two histories that nobody went on reading."""
    if row.node is None:
        return False
    ran_twice = any(past.way is Way.CLONE for past in pasts.of(row.node))
    unread = row.outcome is None and row.replied_at_ms is not None and ran_twice
    return unread or pasts.once_ended(row.node, sender, row.event_id)


def _disagreement(row: Delivery, there: Taken | None, *, twice: bool) -> Iterator[Fault]:
    if there is None:
        yield Fault(FaultKind.LOST, row.event_id, f"{row.node} has no row of it")
    elif row.kind == Kind.MESSAGE and not twice and not _agree(row, there):
        detail = f"its sender: {row.outcome} {row.error}; {row.node}: {there.outcome} {there.error}"
        yield Fault(FaultKind.TURN, row.event_id, detail)


def _agree(row: Delivery, there: Taken) -> bool:
    return row.outcome is there.outcome and (not there.sole or row.error == there.error)
