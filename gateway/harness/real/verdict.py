"""Every promise that a run broke, from the journals and from what was seen."""

from collections.abc import Iterator

from gateway.harness.real.limits import BRIEF, LEASE_MS
from gateway.harness.real.notes import Case, Mark
from gateway.judging.blame import check_blame
from gateway.judging.clocks import check_clocks
from gateway.judging.endings import check_agreement, check_settlements
from gateway.judging.facts import NodeFacts
from gateway.judging.faults import Fault, FaultKind
from gateway.judging.invariants import check_all
from gateway.judging.lives import check_leases
from gateway.judging.witness import Promise
from outbox.kinds import Kind


def judge(case: Case) -> tuple[Fault, ...]:
    """What broke, the gravest last: a run that never came to rest explains what follows."""
    brief = {one.event_id for one in _promises(case) if one.key.startswith(BRIEF)}
    return (
        *_unfinished(case),
        *_crashes(case),
        *_admissions(case),
        *_marks(case),
        *check_all(case.mesh, case.account, case.pasts),
        *check_blame(case.mesh, case.pasts, case.clocks),
        *check_leases(case.lives, case.account, LEASE_MS, case.pasts),
        *check_settlements(case.mesh, case.account, case.pasts),
        *check_clocks(case.mesh, case.clocks),
        *_unasked(case),
        *check_agreement(case.mesh, brief, case.pasts),
    )


def _promises(case: Case) -> Iterator[Promise]:
    """Of agents at clones as well."""
    yield from case.account.promises
    for past in case.pasts.all:
        yield from past.account.promises


def _marks(case: Case) -> Iterator[Fault]:
    """A dead gateway's journal is part of the one that was given up next, or of the present one."""
    for mark in case.marks:
        yield from check_mark(mark, case.pasts.at(mark.node, mark.order, case.mesh[mark.node]))


def check_mark(mark: Mark, facts: NodeFacts) -> Iterator[Fault]:
    """What a dead gateway had on disk is all there later: its outbox, and how far it had read the others.

    What it had not shown to anybody may stand in an epoch that ended without it.
    """
    if facts.upto(mark.head) is None and mark.head not in facts.hidden:
        what = f"its first {mark.head.seq} entries are not what they were"
        yield Fault(FaultKind.FORGOTTEN, mark.node, what)
    for source, head in mark.cursors.items():
        now = facts.cursors.get(source)
        if now is None or (now.epoch, now.seq) < (head.epoch, head.seq):
            yield Fault(FaultKind.CURSOR, f"{mark.node} of {source}", f"it went back from {head.seq}")


def _unfinished(case: Case) -> Iterator[Fault]:
    if not case.rested:
        yield Fault(FaultKind.UNFINISHED, "mesh", "messages were still on their way when the time was over")
    if case.unanswered:
        yield Fault(FaultKind.UNFINISHED, "senders", f"{case.unanswered} sends were never answered")
    for refusal in case.account.refusals:
        yield Fault(FaultKind.REFUSED, refusal.key, f"{refusal.code}: {refusal.what}")
    if case.rooms_differ:
        yield Fault(FaultKind.ROOM, "state room", case.rooms_differ)


def _unasked(case: Case) -> Iterator[Fault]:
    """I1: no message stands in an outbox that nobody was told of; each line insists until it is told."""
    if case.unanswered:
        return
    told = {promise.event_id for promise in _promises(case)}
    for node, facts in case.mesh.items():
        for row in facts.deliveries.values():
            if row.kind == Kind.MESSAGE and row.event_id not in told:
                yield Fault(FaultKind.OUTBOX, row.event_id, f"{node} has it twice or for nobody")


def _crashes(case: Case) -> Iterator[Fault]:
    for end in case.ends:
        if end.trouble is None:
            yield Fault(FaultKind.CRASHED, end.node, f"it ended with status {end.status}, unasked")
    for node, line in case.complaints:
        yield Fault(FaultKind.CRASHED, node, line)


def _admissions(case: Case) -> Iterator[Fault]:
    """I7: nothing came from outside, and no invite worked twice."""
    for node, facts in case.mesh.items():
        for row in facts.received.values():
            if row.source not in case.mesh:
                yield Fault(FaultKind.ADMISSION, row.event_id, f"{node} took it from {row.source}")
    for node in case.readmitted:
        yield Fault(FaultKind.ADMISSION, node, "its spent invite let somebody in again")
