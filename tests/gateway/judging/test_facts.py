"""What an entry of an outbox says."""

from gateway.judging.facts import NodeFacts, said
from outbox.chain import Entry
from outbox.envelope import Ack, Event, encode_event, encode_header, encode_payload, header_of
from outbox.ids import Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.timestamps import rfc3339
from tests.gateway.judging.stories import ANSWER, ASKED, LAB, START_MS, VPS, mesh


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
    told = said(entry(ack(AckStatus.PROCESSED, Outcome.FAILED), (VPS,)), b"digest")
    assert (told.seq, told.digest, told.event_id, told.corr_id) == (3, b"digest", ANSWER, ASKED)
    assert (told.at_ms, told.to, told.outcome, told.deliveries) == (START_MS, (VPS,), Outcome.FAILED, 2)
    assert told.ends
    assert not told.accepts


def test_acceptance_and_refusal_end_no_turn():
    assert said(entry(ack(AckStatus.ACCEPTED, Outcome.OK), (VPS,)), b"").accepts
    assert not said(entry(ack(AckStatus.PROCESSED, Outcome.REFUSED), (VPS,)), b"").ends


def test_a_broadcast_names_no_node():
    assert said(entry(ack(AckStatus.ACCEPTED, Outcome.OK), "*"), b"").to == ()


def test_an_empty_outbox_is_at_nothing():
    empty = NodeFacts(node=LAB, outbox=(), received={}, deliveries={}, cursors={}, incidents=())
    assert empty.seq == 0
    assert mesh()[LAB].seq == 4
