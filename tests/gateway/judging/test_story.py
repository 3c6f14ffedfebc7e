"""The story of the journals, as a report has to tell it."""

from msgspec.structs import replace

from gateway.judging.story import Found, fate, tell
from outbox.records import DeliveryState
from spark.rules import IncidentClass
from tests.gateway.judging.stories import (
    ACCEPT_MS,
    ASKED,
    FAILING,
    LAB,
    MBP,
    OWNERLESS,
    PROCESS_MS,
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


def test_what_was_done_too_late_is_told_and_what_is_closed_is_not():
    late = Found(IncidentClass.ACCEPTED_NOT_PROCESSED, ASKED)
    assert late in tell(mesh(), ACCEPT_MS, 29).incidents
    assert late not in tell(mesh(), ACCEPT_MS, 30).incidents
    facts = mesh()
    closed = tuple(replace(one, closed_at_ms=one.opened_at_ms + 1) for one in facts[VPS].incidents)
    assert tell({**facts, VPS: replace(facts[VPS], incidents=closed)}, ACCEPT_MS, PROCESS_MS).incidents == ()


def test_a_reply_is_further_than_an_ack_and_a_dead_letter_is_the_end():
    row = mesh()[VPS].deliveries[ASKED]
    assert fate(replace(row, state=DeliveryState.PROCESSED)) is DeliveryState.REPLIED
    assert fate(replace(row, state=DeliveryState.DEAD_LETTER)) is DeliveryState.DEAD_LETTER
    assert fate(replace(row, state=DeliveryState.PROCESSED, replied_at_ms=None)) is DeliveryState.PROCESSED


def test_what_was_accepted_too_late_is_told():
    took = {
        entry.corr_id: entry.at_ms - mesh()[VPS].deliveries[entry.corr_id].created_at_ms
        for facts in mesh().values()
        for entry in facts.outbox
        if entry.accepts and entry.corr_id in mesh()[VPS].deliveries
    }
    late = Found(IncidentClass.LATE_ACK, ASKED)
    assert late in tell(mesh(), took[ASKED] - 1, PROCESS_MS).incidents
    assert late not in tell(mesh(), took[ASKED], PROCESS_MS).incidents
