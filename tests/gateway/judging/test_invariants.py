"""A run without fault has none, and each fault that is put into it by hand is found, as what it is."""

import pytest
from msgspec.structs import replace

from gateway.judging.engagements import check_engagements
from gateway.judging.facts import debts, ledger
from gateway.judging.faults import FaultKind
from gateway.judging.invariants import (
    check_accepted,
    check_all,
    check_cursors,
    check_outbox,
    check_promises,
    check_said_once,
    check_sightings,
    check_survival,
    check_turns,
)
from gateway.judging.pasts import Way
from gateway.judging.witness import Account
from outbox.chain import Head
from outbox.kinds import Outcome
from outbox.records import DeliveryState, Share, TurnState
from tests.gateway.judging.bygones import HEAD, SECOND, base, gave_up, past, present
from tests.gateway.judging.stories import (
    ANSWER,
    ASKED,
    EPOCH,
    FAILING,
    LAB,
    MBP,
    START_MS,
    UNANSWERED,
    VPS,
    delivery,
    mesh,
    promise,
    received,
    saw,
    without,
    witness,
)


def found(faults):
    return [(fault.kind, fault.subject) for fault in faults]


def test_a_good_run_has_no_fault():
    good, seen = mesh(), witness().account()
    assert not found(check_promises(good, seen))
    assert not found(check_engagements(good, seen))
    assert not found(check_sightings(good, seen))
    assert not found(check_cursors(good))
    for facts in good.values():
        assert not found(
            (*check_outbox(facts), *check_accepted(facts), *check_said_once(facts), *check_turns(facts))
        )
        assert not found(check_survival(facts, facts))


def test_a_promised_event_that_is_in_no_outbox_is_missed():
    seen = witness()
    seen.heard(promise(UNANSWERED, "line-9", node=MBP))
    assert found(check_promises(mesh(), seen.account())) == [(FaultKind.NOT_IN_OUTBOX, UNANSWERED)]


def test_a_hole_in_an_outbox_is_seen():
    facts = mesh()[LAB]
    holed = replace(facts, outbox=without(facts.outbox, 2))
    assert found(check_outbox(holed)) == [(FaultKind.OUTBOX, LAB)]


def test_an_attempt_that_stands_twice_is_seen():
    facts = mesh()[VPS]
    doubled = replace(facts, outbox=(*facts.outbox, replace(facts.outbox[0], seq=len(facts.outbox) + 1)))
    assert found(check_outbox(doubled)) == [(FaultKind.OUTBOX, ASKED)]


def test_a_chain_that_does_not_verify_is_a_fault():
    assert found(check_outbox(replace(mesh()[MBP], broken="bad signature"))) == [(FaultKind.OUTBOX, MBP)]


def test_accepted_without_a_row_is_a_fault():
    facts = mesh()[LAB]
    rows = {turn: row for turn, row in facts.received.items() if turn.event != UNANSWERED}
    assert found(check_accepted(replace(facts, received=rows))) == [
        (FaultKind.ACCEPTED_WITHOUT_ROW, UNANSWERED)
    ]


def test_a_row_that_is_younger_than_its_ack_is_a_fault():
    facts = mesh()[LAB]
    late = replace(facts.received[VPS, ASKED, "bo"], accepted_at_ms=START_MS + 11)
    faults = check_accepted(replace(facts, received={**facts.received, **ledger([late])}))
    assert found(faults) == [(FaultKind.ACCEPTED_WITHOUT_ROW, ASKED)]


def test_a_turn_that_is_done_without_a_terminal_ack_is_a_fault():
    facts = mesh()[MBP]
    assert found(check_turns(replace(facts, outbox=facts.outbox[:1]))) == [(FaultKind.TURN, FAILING)]


def test_a_terminal_ack_of_an_open_turn_is_a_fault():
    facts = mesh()[LAB]
    reopened = replace(facts.received[VPS, ASKED, "bo"], state=TurnState.LEASED)
    faults = check_turns(replace(facts, received={**facts.received, **ledger([reopened])}))
    assert found(faults) == [(FaultKind.TURN, ASKED)]


@pytest.mark.parametrize("which", [0, -1], ids=["accepted", "ended"])
def test_two_acks_that_say_one_thing_are_a_fault_and_a_repeated_one_is_not(which: int):
    facts = mesh()[MBP]
    said, place = facts.outbox[which], len(facts.outbox) + 1
    repeated = replace(said, seq=place, attempt=2)
    assert not found(check_said_once(replace(facts, outbox=(*facts.outbox, repeated))))
    second = replace(facts, outbox=(*facts.outbox, replace(said, seq=place, event_id=ANSWER)))
    assert found(check_said_once(second)) == [(FaultKind.TURN, FAILING)]


def test_an_ack_that_contradicts_its_ledger_is_a_fault():
    facts = mesh()[MBP]
    better = replace(facts.received[VPS, FAILING, "clumsy"], outcome=Outcome.OK)
    assert found(check_turns(replace(facts, received=ledger([better])))) == [(FaultKind.TURN, FAILING)]


def test_a_turn_that_comes_back_after_its_ack_is_engaged_twice():
    for resumed in (False, True):
        seen = witness()
        saw(seen, ASKED, count=2, resumed=resumed)
        assert (FaultKind.ENGAGED_TWICE, ASKED) in found(check_engagements(mesh(), seen.account()))


def test_a_turn_that_comes_back_unacknowledged_is_fine():
    seen = witness()
    saw(seen, UNANSWERED, agent="hermit")
    saw(seen, UNANSWERED, agent="hermit", resumed=True)
    assert not found(check_engagements(mesh(), seen.account()))


def test_an_event_that_two_nodes_engaged_is_a_fault():
    good = mesh()
    twin = received(ASKED, "bo", VPS, TurnState.DONE, engaged_at_ms=START_MS, outcome=Outcome.OK)
    twice = {**good, MBP: replace(good[MBP], received={**good[MBP].received, **ledger([twin])})}
    assert found(check_engagements(twice, witness().account())) == [(FaultKind.ENGAGED_TWICE, ASKED)]


def test_a_hand_over_that_the_ledger_did_not_see_is_a_fault():
    seen = witness()
    saw(seen, UNANSWERED, agent="hermit")
    assert found(check_sightings(mesh(), seen.account())) == [(FaultKind.TURN, UNANSWERED)]


def test_a_cursor_that_passed_what_was_not_handled_is_a_fault():
    good = mesh()
    forgetful = replace(good[LAB], received={}, outbox=good[LAB].outbox[2:3])
    faults = found(check_cursors({**good, LAB: forgetful, VPS: replace(good[VPS], cursors={})}))
    assert (FaultKind.CURSOR, ASKED) in faults
    assert (FaultKind.CURSOR, UNANSWERED) in faults


def test_a_cursor_into_another_history_is_a_fault():
    good = mesh()
    for head in (Head(EPOCH, 2, b"\0" * 32), Head(EPOCH, 99, b"\0" * 32)):
        strayed = replace(good[LAB], cursors={VPS: head})
        assert found(check_cursors({**good, LAB: strayed})) == [(FaultKind.CURSOR, "lab of vps")]


def test_what_a_killed_gateway_had_must_be_there_afterwards():
    before = mesh()[LAB]
    after = replace(before, outbox=before.outbox[:-1], received={}, deliveries={}, cursors={})
    kinds = [fault.kind for fault in check_survival(before, after)]
    assert kinds.count(FaultKind.FORGOTTEN) == 1 + len(before.received) + len(before.deliveries)
    assert kinds.count(FaultKind.CURSOR) == len(before.cursors)


def test_a_cursor_that_went_back_is_a_fault():
    before = mesh()[LAB]
    back = replace(before, cursors={**before.cursors, VPS: Head(EPOCH, 1, b"")})
    assert found(check_survival(before, back)) == [(FaultKind.CURSOR, "lab of vps")]


def forgotten(facts, upto):
    """The journal after retention has let go of the first entries."""
    floor = facts.outbox[upto - 1]
    return replace(facts, start=Head(floor.epoch, floor.seq, floor.digest), outbox=facts.outbox[upto:])


def test_a_floor_is_no_hole_and_what_went_with_it_is_no_fault():
    good, seen = mesh(), witness().account()
    vps = replace(forgotten(good[VPS], 2), deliveries={})
    pruned = {**good, VPS: vps, LAB: replace(good[LAB], received={})}
    assert not found(check_outbox(vps))
    assert not found(check_promises(pruned, seen))
    assert not found(check_accepted(pruned[LAB], {VPS}))
    assert not found(check_turns(pruned[LAB], {VPS}))
    assert not found(check_sightings(pruned, seen))
    assert not found(check_survival(good[VPS], vps))
    cursors = {fault.subject for fault in check_cursors(pruned)}
    assert cursors == set()


def test_a_hole_after_a_floor_is_a_hole():
    facts = forgotten(mesh()[VPS], 2)
    assert found(check_outbox(replace(facts, outbox=facts.outbox[1:]))) == [(FaultKind.OUTBOX, VPS)]


def test_an_epoch_begins_at_one():
    facts = mesh()[LAB]
    later = replace(facts.outbox[0], epoch="000002-000000000000", attempt=2)
    assert not found(check_outbox(replace(facts, outbox=(*facts.outbox, later))))
    late = replace(later, seq=2)
    assert found(check_outbox(replace(facts, outbox=(*facts.outbox, late)))) == [(FaultKind.OUTBOX, LAB)]


def test_an_id_that_another_node_uses_too_is_another_event():
    good = mesh()
    stolen = received(ASKED, "clumsy", MBP, TurnState.DONE, engaged_at_ms=START_MS, outcome=Outcome.OK)
    both = {**good, MBP: replace(good[MBP], received={**good[MBP].received, **ledger([stolen])})}
    assert not found(check_engagements(both, witness().account()))
    accepted = replace(good[LAB].outbox[0], to=(MBP,), seq=5)
    facts = replace(good[LAB], outbox=(*good[LAB].outbox, accepted))
    assert found(check_accepted(facts)) == [(FaultKind.ACCEPTED_WITHOUT_ROW, ASKED)]


def test_agents_of_several_nodes_may_all_have_a_broadcast():
    good = mesh()
    rows = {
        node: replace(
            good[node],
            received=ledger(
                [received(ASKED, who, VPS, TurnState.DONE, engaged_at_ms=START_MS, share=Share.EVERYONE)]
            ),
        )
        for node, who in ((LAB, "bo"), (MBP, "clumsy"))
    }
    assert not found(check_engagements({**good, **rows}, witness().account()))


# --- nodes that gave up a history


def test_a_promise_of_a_history_that_was_given_up_stands_there_or_nowhere():
    now, told = present(), witness().account()
    assert found(check_promises(now, told, gave_up())) == []
    assert found(check_promises(now, told)) == [(FaultKind.NOT_IN_OUTBOX, ANSWER)]
    later = gave_up(past(order=1))
    assert found(check_promises(now, told, later)) == [(FaultKind.NOT_IN_OUTBOX, ANSWER)]
    lost = gave_up(past(lost=base()))
    assert found(check_promises(now, told, lost)) == [(FaultKind.NOT_IN_OUTBOX, ANSWER)]
    assert found(check_promises(now, told, gave_up(past(way=Way.CLONE)))) == [
        (FaultKind.NOT_IN_OUTBOX, ANSWER)
    ]


def test_a_hand_over_is_in_the_ledger_of_its_time():
    now, seen = present(), witness().account()
    forgets = replace(now[LAB], received={})
    assert found(check_sightings({**now, LAB: forgets}, seen, gave_up())) == []
    assert found(check_sightings({**now, LAB: forgets}, seen, gave_up(past(order=1)))) == [
        (FaultKind.TURN, ASKED)
    ]


def test_what_was_given_up_is_judged_as_well():
    whole, lost = good_end(), past().lost
    holed = gave_up(past(lost=replace(lost, outbox=without(lost.outbox, 2))))
    rowless = gave_up(past(lost=replace(lost, received={})))
    seen = witness().account()
    assert (FaultKind.OUTBOX, LAB) in found(check_all(whole, seen, holed))
    assert (FaultKind.ACCEPTED_WITHOUT_ROW, ASKED) in found(check_all(whole, seen, rowless))


def test_agents_of_a_clone_saw_what_it_knew():
    clone = past(way=Way.CLONE, account=witness_of(LAB))
    assert found(check_all(mesh(), witness().account(), gave_up(clone))) == []
    blank = replace(clone, lost=replace(base(), received={}, outbox=()))
    assert found(check_all(mesh(), witness().account(), gave_up(blank))) == [
        (FaultKind.NOT_IN_OUTBOX, ANSWER),
        (FaultKind.TURN, ASKED),
    ]


def witness_of(node):
    account = witness().account()
    return Account(
        sightings=tuple(one for one in account.sightings if one.node == node),
        promises=tuple(one for one in account.promises if one.node == node),
    )


def good_end():
    """``lab`` ended what it had forgotten once more."""
    facts = mesh()[LAB]
    ended = replace(facts.outbox[-1], epoch=SECOND, seq=1)
    return {**mesh(), LAB: replace(facts, outbox=(*facts.outbox[:2], ended))}


def test_what_a_reader_had_passed_when_a_history_was_given_up_it_has_handled():
    now, lost = present(), past()
    assert found(check_cursors(now, gave_up(lost))) == []
    *before, accepts = now[VPS].outbox
    now[VPS] = replace(now[VPS], received={}, outbox=(*before, replace(accepts, status=None)))
    assert found(check_cursors(now, gave_up(lost))) == [(FaultKind.CURSOR, ANSWER)]
    assert found(check_cursors(now, gave_up(replace(lost, read={VPS: HEAD})))) == []
    stray = replace(lost, read={VPS: Head(EPOCH, 3, bytes(32))})
    assert (FaultKind.CURSOR, "vps of lab") in found(check_cursors(now, gave_up(stray)))


def test_a_reader_may_stand_in_a_history_that_was_given_up_before():
    now, latest = present(), past(lost=base(), order=2_000)
    assert (FaultKind.CURSOR, "vps of lab") in found(check_cursors(now, gave_up(latest)))
    clone = past(way=Way.CLONE)
    assert found(check_cursors(now, gave_up(latest, clone))) == []
    later = replace(clone, order=3_000)
    assert (FaultKind.CURSOR, "vps of lab") in found(check_cursors(now, gave_up(latest, later)))


def test_an_epoch_that_a_reader_may_have_left_out_is_forgiven_what_is_known_to_be_dead():
    """``lab`` wrote 3 for ``vps`` in its first epoch, ran twice, and goes on in its second one."""
    now, late = present(), replace(mesh()[LAB].outbox[2], event_id=FAILING)
    writer = replace(now[LAB], outbox=(*now[LAB].outbox[:2], late, now[LAB].outbox[2]))
    now[LAB] = writer
    now[VPS] = replace(now[VPS], cursors={LAB: writer.head})
    assert found(check_cursors(now)) == [(FaultKind.CURSOR, FAILING)]
    dead = delivery(FAILING, "al", VPS, DeliveryState.DEAD_LETTER, error="expired")
    now[LAB] = replace(writer, deliveries=debts([dead]))
    assert found(check_cursors(now, gave_up(past(way=Way.CLONE)))) == []
    assert found(check_cursors(now, gave_up(past(read={})))) == [(FaultKind.CURSOR, FAILING)]
    now[LAB] = replace(writer, deliveries=debts([replace(dead, state=DeliveryState.EMITTED)]))
    assert found(check_cursors(now, gave_up(past(way=Way.CLONE)))) == [(FaultKind.CURSOR, FAILING)]
