"""What an outbox has forgotten no lake can tell of; what it says, it can."""

from msgspec.structs import replace

from gateway.engine.deliveries import TURN_FAILED
from gateway.engine.recall import DUPLICATE_ENGAGEMENT
from gateway.judging.collected import as_collected
from gateway.judging.facts import debts
from gateway.judging.pasts import NONE
from outbox.kinds import Outcome
from outbox.records import DeliveryState
from tests.gateway.judging.bygones import gave_up, opened, present
from tests.gateway.judging.stories import ASKED, FAILING, LAB, MBP, VPS, mesh


def state(facts, event, node) -> tuple[DeliveryState, bool]:
    row = facts[VPS].deliveries[event, node]
    return row.state, row.replied_at_ms is not None


def test_where_nobody_forgot_all_of_it_is_collected():
    whole = mesh()
    assert as_collected(whole, NONE) is whole


def test_a_reply_that_its_writer_forgot_is_known_to_its_reader_alone():
    now = present()
    assert state(now, ASKED, LAB) == (DeliveryState.REPLIED, True)
    assert state(as_collected(now, gave_up()), ASKED, LAB) == (DeliveryState.ACCEPTED, False)
    ended = replace(mesh()[LAB].outbox[-1], seq=9)
    now[LAB] = replace(now[LAB], outbox=(*now[LAB].outbox, ended))
    assert state(as_collected(now, gave_up()), ASKED, LAB) == (DeliveryState.PROCESSED, False)
    now[LAB] = replace(now[LAB], outbox=mesh()[LAB].outbox)
    assert state(as_collected(now, gave_up()), ASKED, LAB) == (DeliveryState.REPLIED, True)


def test_an_end_that_its_sender_did_not_read_is_in_the_outbox_all_the_same():
    now = {**present(), LAB: mesh()[LAB]}
    failed = replace(now[LAB].outbox[-1], outcome=Outcome.FAILED)
    now[LAB] = replace(now[LAB], outbox=(*now[LAB].outbox[:-1], failed))
    alone = replace(now[VPS].deliveries[ASKED, LAB], outcome=None)
    now[VPS] = replace(now[VPS], deliveries=debts([alone]))
    (*_, told) = as_collected(now, gave_up())[VPS].incidents
    assert (told.kind, told.subject) == (TURN_FAILED, ASKED)
    now[LAB] = mesh()[LAB]
    assert as_collected(now, gave_up())[VPS].incidents == now[VPS].incidents


def test_the_end_that_stands_in_the_outbox_counts_and_not_the_one_that_was_read():
    told = opened((TURN_FAILED, ASKED))
    now = {**present(), LAB: mesh()[LAB]}
    now[VPS] = replace(now[VPS], incidents=told)
    assert as_collected(now, gave_up())[VPS].incidents == (), "it is done by now"
    failed = replace(now[LAB].outbox[-1], outcome=Outcome.FAILED)
    now[LAB] = replace(now[LAB], outbox=(*now[LAB].outbox[:-1], failed))
    assert as_collected(now, gave_up())[VPS].incidents == told
    now[VPS] = replace(now[VPS], incidents=())
    assert [one.subject for one in as_collected(now, gave_up())[VPS].incidents] == [ASKED]
    dead = replace(now[VPS].deliveries[ASKED, LAB], state=DeliveryState.DEAD_LETTER)
    now[VPS] = replace(now[VPS], deliveries=debts([dead]))
    assert as_collected(now, gave_up())[VPS].incidents == (), "what was given up has its own incident"


def test_other_nodes_and_the_dead_are_as_they_were():
    now = present()
    assert state(as_collected(now, gave_up()), FAILING, MBP) == (DeliveryState.PROCESSED, False)
    dead = replace(now[VPS].deliveries[ASKED, LAB], state=DeliveryState.DEAD_LETTER, replied_at_ms=None)
    now[VPS] = replace(now[VPS], deliveries=debts([dead]))
    assert state(as_collected(now, gave_up()), ASKED, LAB) == (DeliveryState.DEAD_LETTER, False)


def test_a_second_turn_is_told_where_it_was_forgotten_and_in_no_outbox():
    told = opened((DUPLICATE_ENGAGEMENT, ASKED))
    now = {**present(), LAB: replace(present()[LAB], incidents=told)}
    now[VPS] = replace(now[VPS], incidents=told)
    shown = as_collected(now, gave_up())
    assert shown[LAB].incidents == ()
    assert shown[VPS].incidents == told, "its sender has two answers of two nodes"
