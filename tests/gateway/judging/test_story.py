"""The story of the journals, as a report has to tell it."""

from msgspec.structs import replace

from gateway.engine.epochs import OWN_FORK
from gateway.engine.forks import FORK, ROLLBACK
from gateway.judging.facts import Debt
from gateway.judging.story import Found, fate, tell
from outbox.records import DeliveryState, Incident
from spark.rules import IncidentClass
from tests.gateway.judging.stories import (
    ACCEPT_MS,
    ASKED,
    FAILING,
    LAB,
    MBP,
    OWNERLESS,
    PROCESS_MS,
    START_MS,
    UNANSWERED,
    VPS,
    mesh,
)

OPEN = {
    Found(IncidentClass.ACCEPTED_NOT_PROCESSED, UNANSWERED),
    Found(IncidentClass.TURN_FAILED, FAILING),
    Found(IncidentClass.DEAD_LETTER, OWNERLESS),
}


def test_entries_states_and_open_incidents_are_told():
    story = tell(mesh(), ACCEPT_MS, PROCESS_MS)
    assert story.entries == {VPS: 6, MBP: 2, LAB: 4}
    assert story.states["message", DeliveryState.REPLIED] == 1
    assert set(story.incidents) == OPEN


def test_what_was_done_too_late_or_failed_is_told_and_what_is_closed_is_not():
    late = Found(IncidentClass.ACCEPTED_NOT_PROCESSED, ASKED)
    assert late in tell(mesh(), ACCEPT_MS, 29).incidents
    assert late not in tell(mesh(), ACCEPT_MS, 30).incidents
    facts = mesh()
    closed = tuple(replace(one, closed_at_ms=one.opened_at_ms + 1) for one in facts[VPS].incidents)
    story = tell({**facts, VPS: replace(facts[VPS], incidents=closed)}, ACCEPT_MS, PROCESS_MS)
    assert story.incidents == (Found(IncidentClass.TURN_FAILED, FAILING),)


def test_a_fork_is_told_also_when_its_writer_went_on_elsewhere():
    facts = mesh()
    twice = [
        Incident(kind=FORK, subject="mbp/000001-000000000000", opened_at_ms=1, closed_at_ms=2),
        Incident(kind=ROLLBACK, subject="mbp/000001-000000000000", opened_at_ms=2, closed_at_ms=2),
        Incident(kind=OWN_FORK, subject="vps/000001-000000000000", opened_at_ms=2),
    ]
    forked = replace(facts[VPS], incidents=(*facts[VPS].incidents, *twice))
    story = tell({**facts, VPS: forked}, ACCEPT_MS, PROCESS_MS)
    assert set(story.incidents) - OPEN == {Found(IncidentClass.FORK, "mbp/000001-000000000000")}


def test_a_reply_is_further_than_an_ack_and_a_dead_letter_is_the_end():
    row = mesh()[VPS].deliveries[ASKED, LAB]
    assert fate([replace(row, state=DeliveryState.PROCESSED)]) is DeliveryState.REPLIED
    assert fate([replace(row, state=DeliveryState.DEAD_LETTER)]) is DeliveryState.DEAD_LETTER
    assert fate([replace(row, state=DeliveryState.PROCESSED, replied_at_ms=None)]) is DeliveryState.PROCESSED


def test_what_was_accepted_too_late_is_told():
    took = {
        entry.corr_id: entry.at_ms - START_MS
        for facts in mesh().values()
        for entry in facts.outbox
        if entry.accepts
    }
    late = Found(IncidentClass.LATE_ACK, ASKED)
    assert late in tell(mesh(), took[ASKED] - 1, PROCESS_MS).incidents
    assert late not in tell(mesh(), took[ASKED], PROCESS_MS).incidents


def test_clocks_that_disagree_are_told_by_their_pair():
    facts = mesh()[LAB]
    behind = tuple(replace(entry, at_ms=entry.at_ms - 1_011) for entry in facts.outbox)
    skewed = Found(IncidentClass.CLOCK_SKEW, "vps>lab")
    assert skewed in tell({**mesh(), LAB: replace(facts, outbox=behind)}, ACCEPT_MS, PROCESS_MS).incidents
    near = tuple(replace(entry, at_ms=entry.at_ms - 1_010) for entry in facts.outbox)
    assert skewed not in tell({**mesh(), LAB: replace(facts, outbox=near)}, ACCEPT_MS, PROCESS_MS).incidents


def test_what_was_given_up_here_and_done_there_is_told():
    facts = mesh()[VPS]
    dead = replace(facts.deliveries[ASKED, LAB], state=DeliveryState.DEAD_LETTER)
    rows = {**facts.deliveries, Debt(ASKED, LAB): dead}
    late = Found(IncidentClass.ANSWERED_AFTER_DEAD_LETTER, ASKED)
    assert late in tell({**mesh(), VPS: replace(facts, deliveries=rows)}, ACCEPT_MS, PROCESS_MS).incidents
    assert late not in tell(mesh(), ACCEPT_MS, PROCESS_MS).incidents


def test_an_event_for_several_nodes_is_one_event():
    facts = mesh()[VPS]
    at_lab = facts.deliveries[ASKED, LAB]
    rows = {**facts.deliveries, Debt(ASKED, MBP): replace(at_lab, node=MBP, state=DeliveryState.ACCEPTED)}
    story = tell({**mesh(), VPS: replace(facts, deliveries=rows)}, ACCEPT_MS, PROCESS_MS)
    assert story.states == tell(mesh(), ACCEPT_MS, PROCESS_MS).states
