"""What a run came to: counts, times, planted trouble, and every broken promise.

All of it is worked out from the journals and from what the agents saw. A run is good when it has no fault.
"""

from collections.abc import Iterator, Mapping

import msgspec

from gateway.demo.extras import PLANTED, Trouble
from gateway.judging.clocks import check_clocks
from gateway.judging.counts import Counts, count
from gateway.judging.facts import Mesh, NodeFacts
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.invariants import check_all, check_survival
from gateway.judging.percentiles import Percentiles, percentiles
from gateway.judging.story import Found, Story, fate, obligations, open_incidents, subject_of, tell
from gateway.judging.witness import Account
from outbox.delivery import settled
from outbox.errors import UnknownRecipient
from outbox.ids import EventId, NodeId
from outbox.kinds import Kind
from outbox.records import Delivery
from spark.rules import IncidentClass


class Verdict(Story, frozen=True, kw_only=True):
    """The result of a run: the story, and what there is to say of it."""

    counts: Counts
    accepted_ms: Percentiles | None
    """From the send to the moment when the sender's node knows it is on the other disk."""
    processed_ms: Percentiles | None
    planted: dict[Trouble, EventId]
    faults: tuple[Fault, ...]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about a run."""

    mesh: dict[NodeId, NodeFacts]
    killed: tuple[NodeFacts, ...]
    """The journals of killed gateways, as they were found before their restart."""
    account: Account
    accept_ms: int
    """What was promised from an event's creation to ``accepted``."""
    process_ms: int
    """What was promised from ``accepted`` to ``processed``."""
    unsaid: int = 0
    """Lines of the conversation that no gateway took."""
    rested: bool = True
    """Whether nothing was on its way any more when the journals were read."""


def judge(case: Case) -> Verdict:
    """Look at everything and say what it came to."""
    debts = obligations(case.mesh)
    rows = [row for rows in debts.values() for row in rows]
    planted = _planted(case.account)
    story = tell(case.mesh, case.accept_ms, case.process_ms)
    faults = (*_broken(case), *_lost(case.mesh), *_misjudged(case, debts, planted, story.incidents))
    return Verdict(
        counts=count(rows, case.account, faults),
        accepted_ms=percentiles(
            [took for row in rows if (took := _took(row, row.accepted_at_ms)) is not None]
        ),
        processed_ms=percentiles([took for row in rows if (took := _took(row, _done_ms(row))) is not None]),
        states=story.states,
        incidents=story.incidents,
        planted=planted,
        entries=story.entries,
        faults=faults,
    )


def _done_ms(row: Delivery) -> int | None:
    times = [at for at in (row.processed_at_ms, row.replied_at_ms) if at is not None]
    return min(times, default=None)


def _took(row: Delivery, at_ms: int | None) -> int | None:
    return None if at_ms is None else at_ms - row.created_at_ms


def _planted(account: Account) -> dict[Trouble, EventId]:
    found = {trouble: account.promised(trouble) for trouble in Trouble}
    return {trouble: event for trouble, event in found.items() if event is not None}


def _broken(case: Case) -> Iterator[Fault]:
    if case.unsaid:
        yield Fault(FaultKind.UNFINISHED, "conversation", f"{case.unsaid} lines were never said")
    if not case.rested:
        yield Fault(FaultKind.UNFINISHED, "mesh", "messages were still on their way when the time was over")
    yield from check_all(case.mesh, case.account)
    yield from check_clocks(case.mesh, {})
    for before in case.killed:
        yield from check_survival(before, case.mesh[before.node])


def _lost(mesh: Mesh) -> Iterator[Fault]:
    """Obligations that are neither settled nor explained by an open incident of their own node."""
    for facts in mesh.values():
        explained = {incident.subject for incident in facts.incidents if incident.closed_at_ms is None}
        for row in facts.deliveries.values():
            if not settled(Kind(row.kind), row.state) and subject_of(row) not in explained:
                detail = f"{row.from_agent} to {row.to_agent} at {row.node}: {row.state}, nothing says why"
                yield Fault(FaultKind.LOST, subject_of(row), detail)


def _misjudged(
    case: Case,
    debts: Mapping[str, list[Delivery]],
    planted: Mapping[Trouble, EventId],
    found: tuple[Found, ...],
) -> Iterator[Fault]:
    """Planted trouble that is missing or came to another end, and open incidents that nobody planted."""
    mesh, account = case.mesh, case.account
    expected = {Found(PLANTED[trouble].incident, event) for trouble, event in planted.items()}
    for trouble, plan in PLANTED.items():
        event = planted.get(trouble)
        rows = debts.get(event) if event is not None else None
        if event is None or rows is None:
            yield Fault(FaultKind.PLANTED, trouble, "it was never sent")
        elif fate(rows) is not plan.state:
            yield Fault(FaultKind.PLANTED, event, f"{trouble}: it is {fate(rows)}, not {plan.state}")
    for missing in expected - set(found):
        yield Fault(FaultKind.PLANTED, missing.subject, f"no journal has the incident {missing.name}")
    if not any(refusal.code == UnknownRecipient.code for refusal in account.refusals):
        yield Fault(FaultKind.PLANTED, "unknown name", "a message to nobody was not refused")
    for facts in mesh.values():
        for incident in facts.incidents:
            if incident.closed_at_ms is None and incident.kind not in set(IncidentClass):
                yield Fault(FaultKind.PLANTED, incident.subject, f"{incident.kind}: {incident.detail}")
    for stranger in sorted(set(open_incidents(mesh)) - expected):
        yield Fault(
            FaultKind.PLANTED, stranger.subject, f"an open incident that nobody planted: {stranger.name}"
        )
