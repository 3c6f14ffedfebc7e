"""What is dealt after its end is a fault, but for what was forgotten and is told of."""

import pytest
from msgspec.structs import replace

from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from gateway.judging.engagements import check_engagements, ends_before
from gateway.judging.facts import ledger
from gateway.judging.faults import FaultKind
from gateway.judging.pasts import NONE, Pasts, Way
from outbox.kinds import Kind
from outbox.records import TurnState
from tests.gateway.judging.bygones import ORDER, REPORTED, again, gave_up, past, present
from tests.gateway.judging.stories import ASKED, LAB, MBP, START_MS, VPS, received, saw

TWICE, SILENT = [(FaultKind.ENGAGED_TWICE, ASKED)], [(FaultKind.UNREPORTED, ASKED)]
SELF = replace(received(ASKED, "bo", LAB, TurnState.DONE), engaged_at_ms=START_MS)


def found(mesh, seen, pasts=NONE):
    return [(fault.kind, fault.subject) for fault in check_engagements(mesh, seen.account(), pasts)]


@pytest.mark.parametrize("report", [REPORTED, (DUPLICATE_ENGAGEMENT, ASKED)], ids=lambda one: one[0])
def test_what_was_forgotten_may_come_again_when_the_node_says_so(report):
    assert found(present(report), again(), gave_up()) == []
    assert found(present((report[0], "evt_other")), again(), gave_up()) == SILENT


def test_without_a_history_that_was_given_up_nothing_comes_again():
    assert found(present(REPORTED), again()) == TWICE
    assert found(present(REPORTED), again(), gave_up(past(node=MBP))) == TWICE
    assert found(present(REPORTED), again(), gave_up(past(way=Way.CLONE))) == TWICE


def test_it_explains_one_time_and_no_more():
    seen = again()
    seen.settled("bo", ASKED)
    saw(seen, ASKED, count=3)
    assert found(present(REPORTED), seen, gave_up()) == TWICE


def test_what_its_sender_knows_to_be_ended_is_not_done_again_by_a_restored_node():
    knows = past(ended={VPS: frozenset({ASKED})})
    assert found(present(REPORTED), again(), gave_up(knows)) == TWICE
    assert found(present(REPORTED), again(), gave_up(replace(knows, way=Way.COPY))) == []
    forgot_too = past(node=VPS, order=ORDER + 1)
    assert found(present(REPORTED), again(), Pasts((knows, forgot_too))) == []


def test_what_nobody_knew_of_need_not_be_told():
    assert found(present(), again(), gave_up(past(accepted={}))) == []
    assert found(present(), again(), gave_up()) == SILENT


def test_what_a_node_wrote_to_itself_it_tells_of_when_it_knows_that_it_was_restored():
    lost = replace(past().lost, received=ledger([SELF]))
    assert found(present(), again(), gave_up(past(lost=lost))) == SILENT
    assert found(present(), again(), gave_up(past(lost=lost, way=Way.COPY))) == []


@pytest.mark.parametrize(("way", "expected"), [(Way.BACKUP, SILENT), (Way.COPY, [])])
def test_of_a_reply_that_a_copy_dealt_again_there_is_no_ack_to_ask_about(way, expected):
    lost = past().lost
    rows = [replace(row, kind=Kind.REPLY) for row in lost.received.values()]
    assert found(present(), again(), gave_up(past(way=Way.COPY))) == SILENT, "of a message there is one"
    assert (
        found(present(), again(), gave_up(past(lost=replace(lost, received=ledger(rows)), way=way)))
        == expected
    )


def test_two_nodes_are_two_also_when_one_has_forgotten_it():
    now = present()
    mine = replace(received(ASKED, "bo", VPS, TurnState.DONE), engaged_at_ms=START_MS)
    now[LAB] = replace(now[LAB], received={})
    now[MBP] = replace(now[MBP], received=ledger([mine]))
    seen = again()
    assert found(now, seen, gave_up(past(accepted={}))) == TWICE


def test_the_latest_end_before_a_deal_is_the_one_that_counts():
    seen = again(ends=2)
    account = seen.account()
    orders = [end.order for end in account.settlements if end.event_id == ASKED]
    assert ends_before(account)(account.sightings[-1]) == max(orders)
    assert ends_before(account)(account.sightings[0]) is None
