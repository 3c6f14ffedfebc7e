"""I4: when a run has come to rest, everything has an end, and both sides tell the same one."""

from collections.abc import Container, Iterator

from gateway.judging.faults import Fault, FaultKind
from gateway.judging.invariants import Mesh
from gateway.judging.witness import Account
from outbox.delivery import settled
from outbox.ids import EventId
from outbox.kinds import Kind
from outbox.records import Delivery, DeliveryState, TurnState


def check_settlements(mesh: Mesh, account: Account) -> Iterator[Fault]:
    """The end of a turn that an agent was told of is in the ledger."""
    rows = {event: row for facts in mesh.values() for event, row in facts.received.items()}
    for end in account.settlements:
        row = rows.get(end.event_id)
        if row is None or row.state is not TurnState.DONE:
            yield Fault(FaultKind.LOST, end.event_id, f"{end.agent} was told that it is over")


def check_agreement(mesh: Mesh, may_expire: Container[EventId] = ()) -> Iterator[Fault]:
    """Every delivery ended, as a dead letter only where it was meant to expire, and as its receiver says."""
    for facts in mesh.values():
        for event, row in facts.deliveries.items():
            if row.state is DeliveryState.DEAD_LETTER and event in may_expire and row.error == "expired":
                continue
            if not settled(Kind(row.kind), row.state) or row.state is DeliveryState.DEAD_LETTER:
                detail = f"{row.kind} to {row.to_agent} is {row.state}: {row.error}"
                yield Fault(FaultKind.LOST, event, detail)
            else:
                yield from _disagreement(mesh, row)


def _disagreement(mesh: Mesh, row: Delivery) -> Iterator[Fault]:
    receiver = mesh.get(row.node) if row.node is not None else None
    there = receiver.received.get(row.event_id) if receiver is not None else None
    if there is None:
        yield Fault(FaultKind.LOST, row.event_id, f"{row.node} has no row of it")
    elif row.kind == Kind.MESSAGE and (there.outcome, there.error) != (row.outcome, row.error):
        detail = f"its sender: {row.outcome} {row.error}; {row.node}: {there.outcome} {there.error}"
        yield Fault(FaultKind.TURN, row.event_id, detail)
