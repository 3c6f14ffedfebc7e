"""I4: when a run has come to rest, everything has an end, and both sides tell the same one."""

from collections.abc import Container, Iterator

from gateway.judging.faults import Fault, FaultKind
from gateway.judging.invariants import Mesh
from gateway.judging.turns import Taken, taken
from gateway.judging.witness import Account
from outbox.delivery import settled
from outbox.ids import EventId
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState, TurnState


def check_settlements(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """The end of a turn that an agent was told of is in the ledger."""
    done = {
        (turn.event, turn.agent)
        for facts in mesh.values()
        for turn, row in facts.received.items()
        if row.state is TurnState.DONE
    }
    forgetful = any(facts.has_forgotten for facts in mesh.values())
    for end in account.settlements:
        if (end.event_id, end.agent) not in done and not forgetful:
            yield Fault(FaultKind.LOST, end.event_id, f"{end.agent} was told that it is over")


def check_agreement(mesh: Mesh, may_expire: Container[EventId] = ()) -> Iterator[Fault]:
    """Every delivery ended, as a dead letter only where it was meant to expire, and as its receiver says."""
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
                yield from _disagreement(row, at_receiver.get((node, event)))


def _disagreement(row: Delivery, there: Taken | None) -> Iterator[Fault]:
    if there is None:
        yield Fault(FaultKind.LOST, row.event_id, f"{row.node} has no row of it")
    elif row.kind == Kind.MESSAGE and not _agree(row, there):
        detail = f"its sender: {row.outcome} {row.error}; {row.node}: {there.outcome} {there.error}"
        yield Fault(FaultKind.TURN, row.event_id, detail)


def _agree(row: Delivery, there: Taken) -> bool:
    return row.outcome is there.outcome and (not there.sole or row.error == there.error)
