"""What an entry of an outbox says."""

from msgspec.structs import replace

from gateway.judging.facts import NodeFacts, said
from outbox.chain import Entry, Head
from outbox.envelope import Ack, Event, encode_event, encode_header, encode_payload, header_of
from outbox.ids import Epoch, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.timestamps import rfc3339
from tests.gateway.judging.stories import ANSWER, ASKED, EPOCH, GENESIS, LAB, START_MS, VPS, mesh


def entry(event, to):
    body = encode_event(event)
    return Entry(Seq(3), encode_header(header_of(event, to, len(body))), body)


def ack(status, outcome):
    return Event(
        event_id=ANSWER,
        kind=Kind.ACK,
        source_node_id=LAB,
        corr_id=ASKED,
        created_at=rfc3339(START_MS),
        payload=encode_payload(Ack(ref=ASKED, status=status, outcome=outcome, deliveries=2)),
    )


def test_an_ack_says_what_of_what_and_when():
    told = said(entry(ack(AckStatus.PROCESSED, Outcome.FAILED), (VPS,)), Head(EPOCH, Seq(3), b"digest"))
    assert (told.seq, told.digest, told.event_id, told.corr_id) == (3, b"digest", ANSWER, ASKED)
    assert (told.at_ms, told.to, told.outcome, told.deliveries) == (START_MS, (VPS,), Outcome.FAILED, 2)
    assert told.ends
    assert not told.accepts


def test_acceptance_and_refusal_end_no_turn():
    assert said(entry(ack(AckStatus.ACCEPTED, Outcome.OK), (VPS,)), GENESIS).accepts
    assert not said(entry(ack(AckStatus.PROCESSED, Outcome.REFUSED), (VPS,)), GENESIS).ends


def test_a_broadcast_names_no_node():
    assert said(entry(ack(AckStatus.ACCEPTED, Outcome.OK), "*"), GENESIS).to == ()


def test_an_empty_outbox_is_at_nothing():
    empty = NodeFacts(
        node=LAB, start=GENESIS, outbox=(), received={}, deliveries={}, cursors={}, incidents=()
    )
    assert empty.seq == 0
    assert mesh()[LAB].seq == 4


def test_a_head_is_a_place_in_the_history_or_none():
    facts = mesh()[LAB]
    second = facts.outbox[1]
    assert facts.upto(Head(EPOCH, Seq(2), second.digest)) == facts.outbox[:2]
    assert facts.upto(Head(EPOCH, Seq(0), b"whatever")) == ()
    assert facts.upto(Head(EPOCH, Seq(2), bytes(32))) is None
    assert facts.upto(Head(EPOCH, Seq(9), second.digest)) is None


def test_what_was_forgotten_is_not_judged():
    facts = mesh()[LAB]
    floor = Head(EPOCH, Seq(2), facts.outbox[1].digest)
    pruned = replace(facts, start=floor, outbox=facts.outbox[2:])
    assert (pruned.has_forgotten, facts.has_forgotten) == (True, False)
    assert pruned.upto(Head(EPOCH, Seq(1), b"who knows")) == ()
    assert pruned.upto(floor) == ()
    assert pruned.upto(replace(floor, hash=bytes(32))) is None
    assert replace(pruned, outbox=()).seq == 2


def test_each_epoch_counts_anew():
    later = Epoch("000002-000000000000")
    facts = mesh()[LAB]
    again = tuple(replace(entry, epoch=later) for entry in facts.outbox[:1])
    both = replace(facts, outbox=(*facts.outbox, *again))
    assert both.upto(Head(later, Seq(1), again[0].digest)) == both.outbox
    assert both.upto(Head(EPOCH, Seq(1), again[0].digest)) == both.outbox[:1]


def test_an_epoch_ends_where_its_last_entry_stands_whoever_may_read_it():
    facts = mesh()[LAB]
    held = replace(facts, unshown={EPOCH: Seq(4)}, hidden=frozenset({Head(EPOCH, Seq(6), bytes(32))}))
    assert (facts.last_of(EPOCH), held.last_of(EPOCH), held.shown_of(EPOCH)) == (4, 6, 4)
    assert held.last_of(Epoch("000002-000000000000")) == 0
