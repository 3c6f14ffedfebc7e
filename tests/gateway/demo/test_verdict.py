"""The verdict over a small run made by hand: its figures, and that it misses no fault."""

import pytest
from msgspec.structs import replace

from gateway.demo.extras import Trouble
from gateway.demo.verdict import judge
from gateway.judging.facts import Debt
from gateway.judging.faults import FaultKind
from gateway.judging.percentiles import Percentiles
from gateway.judging.story import Found
from gateway.judging.witness import Account
from outbox.kinds import Kind
from outbox.records import DeliveryState, Incident
from spark.rules import IncidentClass
from tests.gateway.judging.stories import (
    ANSWER,
    ASKED,
    FAILING,
    LAB,
    MBP,
    OWNERLESS,
    PROCESS_MS,
    START_MS,
    UNANSWERED,
    VPS,
    case,
    delivery,
    mesh,
    saw,
    with_node,
    witness,
)


def kinds(verdict):
    return {fault.kind for fault in verdict.faults}


def test_a_good_run_is_counted_and_has_no_fault():
    verdict = judge(case())
    assert verdict.faults == ()
    counts = verdict.counts
    assert (counts.sent, counts.accepted, counts.processed, counts.replied) == (5, 4, 1, 1)
    assert (counts.failed, counts.refused, counts.dead_lettered, counts.waiting) == (1, 1, 1, 1)
    assert (counts.lost, counts.engaged_twice, counts.resumed, counts.redelivered) == (0, 0, 0, 0)
    assert verdict.accepted_ms == Percentiles(12, 12, 12)
    assert verdict.processed_ms == Percentiles(22, 42, 42)
    assert verdict.entries == {VPS: 6, MBP: 2, LAB: 4}
    assert verdict.planted == {
        Trouble.UNANSWERED: UNANSWERED, Trouble.FAILING: FAILING, Trouble.OWNERLESS: OWNERLESS,
    }  # fmt: skip
    assert set(verdict.incidents) == {
        Found(IncidentClass.ACCEPTED_NOT_PROCESSED, UNANSWERED),
        Found(IncidentClass.TURN_FAILED, FAILING),
        Found(IncidentClass.DEAD_LETTER, OWNERLESS),
    }


def test_the_states_are_those_a_report_must_count():
    assert judge(case()).states == {
        (Kind.MESSAGE, DeliveryState.REPLIED): 1,
        (Kind.MESSAGE, DeliveryState.ACCEPTED): 1,
        (Kind.MESSAGE, DeliveryState.PROCESSED): 1,
        (Kind.MESSAGE, DeliveryState.DEAD_LETTER): 1,
        (Kind.REPLY, DeliveryState.ACCEPTED): 1,
    }


@pytest.mark.parametrize(
    "state", [DeliveryState.EMITTED, DeliveryState.RETRY_PENDING, DeliveryState.ACCEPTED]
)
def test_an_open_delivery_without_an_incident_is_lost(state):
    facts = mesh()[VPS]
    open_row = delivery(ASKED, "bo", LAB, state)
    verdict = judge(with_node(replace(facts, deliveries={**facts.deliveries, Debt(ASKED, LAB): open_row})))
    assert [fault.subject for fault in verdict.faults if fault.kind is FaultKind.LOST] == [ASKED]
    assert verdict.counts.lost == 1


def test_an_incident_of_one_node_of_several_explains_no_other():
    facts = mesh()[VPS]
    rows = {Debt(ASKED, node): delivery(ASKED, "*", node, DeliveryState.EMITTED) for node in (LAB, MBP)}
    told = Incident(kind=IncidentClass.NEVER_ACCEPTED, subject=f"{ASKED}@{LAB}", opened_at_ms=START_MS)
    group = replace(facts, deliveries={**facts.deliveries, **rows}, incidents=(*facts.incidents, told))
    faults = judge(with_node(group)).faults
    assert [fault.subject for fault in faults if fault.kind is FaultKind.LOST] == [f"{ASKED}@{MBP}"]


def test_an_accepted_reply_owes_nothing_more():
    facts = mesh()[LAB]
    assert facts.deliveries[ANSWER, VPS].state is DeliveryState.ACCEPTED
    assert FaultKind.LOST not in kinds(judge(case()))


def test_a_closed_incident_explains_nothing():
    facts = mesh()[VPS]
    closed = tuple(replace(incident, closed_at_ms=START_MS + 9_000) for incident in facts.incidents)
    verdict = judge(with_node(replace(facts, incidents=closed)))
    assert {FaultKind.LOST, FaultKind.PLANTED} <= kinds(verdict)


def test_planted_trouble_that_ended_well_is_a_fault():
    facts = mesh()[VPS]
    well = delivery(FAILING, "clumsy", MBP, DeliveryState.REPLIED, replied_at_ms=START_MS + 30)
    verdict = judge(with_node(replace(facts, deliveries={**facts.deliveries, Debt(FAILING, MBP): well})))
    assert [fault.subject for fault in verdict.faults if fault.kind is FaultKind.PLANTED] == [FAILING]


def test_an_open_incident_that_nobody_planted_is_a_fault():
    facts = mesh()[VPS]
    for kind in ("never_accepted", "foreign_agent"):
        stranger = Incident(kind=kind, subject=ASKED, opened_at_ms=START_MS)
        verdict = judge(with_node(replace(facts, incidents=(*facts.incidents, stranger))))
        assert [fault.subject for fault in verdict.faults] == [ASKED]


def test_trouble_that_was_never_sent_and_a_name_that_was_not_refused_are_faults():
    verdict = judge(case(account=Account(sightings=(), promises=(), settlements=(), refusals=())))
    subjects = [fault.subject for fault in verdict.faults]
    assert {*Trouble, "unknown name"} <= set(subjects)


def test_a_late_turn_is_an_incident_and_no_fault():
    facts = mesh()[LAB]
    late_ms = START_MS + 10 + PROCESS_MS + 1
    outbox = tuple(
        replace(entry, at_ms=late_ms) if entry.corr_id == ASKED and not entry.accepts else entry
        for entry in facts.outbox
    )
    taken = tuple(
        replace(entry, at_ms=late_ms) if entry.corr_id == ANSWER else entry for entry in mesh()[VPS].outbox
    )
    whole = {**mesh(), LAB: replace(facts, outbox=outbox), VPS: replace(mesh()[VPS], outbox=taken)}
    verdict = judge(case(mesh=whole))
    assert Found(IncidentClass.ACCEPTED_NOT_PROCESSED, ASKED) in verdict.incidents
    assert verdict.faults == ()


def test_resumed_and_redelivered_turns_are_counted_apart():
    seen = witness()
    saw(seen, UNANSWERED, agent="hermit")
    saw(seen, UNANSWERED, agent="hermit", resumed=True)
    saw(seen, UNANSWERED, agent="hermit", count=2)
    counts = judge(case(account=seen.account())).counts
    assert (counts.resumed, counts.redelivered, counts.engaged_twice) == (1, 1, 0)


def test_quarantined_entries_are_a_fault():
    assert kinds(judge(with_node(replace(mesh()[MBP], quarantined=1)))) == {FaultKind.OUTBOX}


def test_a_play_that_did_not_come_to_its_end_is_a_fault():
    assert kinds(judge(case(unsaid=1))) == {FaultKind.UNFINISHED}
    assert kinds(judge(case(rested=False))) == {FaultKind.UNFINISHED}


def test_what_a_crash_forgot_is_a_fault():
    richer = replace(
        mesh()[LAB],
        deliveries={**mesh()[LAB].deliveries, Debt(ASKED, VPS): delivery(ASKED, "x", VPS, "emitted")},
    )
    assert kinds(judge(case(killed=(richer,)))) == {FaultKind.FORGOTTEN}
