"""Everything ends, and both sides tell the same end."""

from msgspec.structs import replace

from gateway.judging.endings import check_agreement, check_settlements
from gateway.judging.facts import debts, ledger
from gateway.judging.faults import FaultKind
from gateway.judging.pasts import Way
from outbox.ids import AgentId
from outbox.kinds import Outcome
from outbox.records import DeliveryState
from tests.gateway.judging.bygones import base, gave_up, past
from tests.gateway.judging.stories import ASKED, FAILING, LAB, MBP, OWNERLESS, UNANSWERED, VPS, mesh, witness


def agreed():
    """The story in which the two sides of the failure name the same reason."""
    facts = mesh()
    row = replace(facts[MBP].received[VPS, FAILING, "clumsy"], error="no")
    return {**facts, MBP: replace(facts[MBP], received=ledger([row]))}


def found(faults):
    return sorted((fault.kind, fault.subject) for fault in faults)


def test_what_waits_and_what_is_dead_has_no_good_end():
    assert found(check_agreement(agreed())) == sorted(
        [(FaultKind.LOST, UNANSWERED), (FaultKind.LOST, OWNERLESS)]
    )


def test_what_was_meant_to_expire_may():
    facts = agreed()
    rows = facts[VPS].deliveries
    dead = replace(rows[OWNERLESS, None], state=DeliveryState.DEAD_LETTER, error="expired")
    facts[VPS] = replace(facts[VPS], deliveries={**rows, **debts([dead])})
    assert found(check_agreement(facts, {OWNERLESS})) == [(FaultKind.LOST, UNANSWERED)]


def test_two_stories_of_one_end_are_found():
    facts = agreed()
    row = replace(facts[MBP].received[VPS, FAILING, "clumsy"], outcome=Outcome.OK)
    facts[MBP] = replace(facts[MBP], received=ledger([row]))
    assert (FaultKind.TURN, FAILING) in found(check_agreement(facts))
    facts[MBP] = replace(facts[MBP], received={})
    assert (FaultKind.LOST, FAILING) in found(check_agreement(facts))


def test_an_end_that_an_agent_was_told_of_is_in_the_ledger():
    facts, seen = mesh(), witness()
    assert found(check_settlements(facts, seen.account())) == []
    seen.settled(AgentId("hermit"), UNANSWERED)
    assert found(check_settlements(facts, seen.account())) == [(FaultKind.LOST, UNANSWERED)]
    facts[LAB] = replace(facts[LAB], received={})
    assert (FaultKind.LOST, ASKED) in found(check_settlements(facts, seen.account()))


def test_an_end_that_was_told_before_its_node_went_back_is_forgotten_and_no_other():
    facts, seen = {**mesh(), LAB: base()}, witness().account()
    missing = [(FaultKind.LOST, ASKED)]
    assert found(check_settlements(facts, seen)) == missing
    assert found(check_settlements(facts, seen, gave_up())) == []
    assert found(check_settlements(facts, seen, gave_up(past(order=1)))) == missing
    assert found(check_settlements(facts, seen, gave_up(past(way=Way.CLONE)))) == missing
    assert found(check_settlements(facts, seen, gave_up(past(lost=base())))) == missing


def test_of_a_node_that_ran_twice_a_sender_may_have_the_reply_alone():
    facts, differs = agreed(), (FaultKind.TURN, ASKED)
    clone = past(way=Way.CLONE, lost=base())
    for alone, forgiven in ((None, True), (Outcome.FAILED, False)):
        row = replace(facts[VPS].deliveries[ASKED, LAB], outcome=alone)
        facts[VPS] = replace(facts[VPS], deliveries={**facts[VPS].deliveries, **debts([row])})
        assert differs in found(check_agreement(facts))
        assert (differs not in found(check_agreement(facts, pasts=gave_up(clone)))) is forgiven


def test_who_forgot_an_end_may_have_come_to_another():
    facts = agreed()
    row = replace(facts[LAB].received[VPS, ASKED, "bo"], outcome=Outcome.FAILED)
    facts[LAB] = replace(facts[LAB], received={**facts[LAB].received, **ledger([row])})
    differs = (FaultKind.TURN, ASKED)
    assert differs in found(check_agreement(facts))
    assert differs not in found(check_agreement(facts, pasts=gave_up()))
    assert differs in found(check_agreement(facts, pasts=gave_up(past(lost=base()))))
    facts[LAB] = replace(facts[LAB], received={})
    assert (FaultKind.LOST, ASKED) in found(check_agreement(facts, pasts=gave_up()))
