"""An agent has the answers of one node to a message that went to two."""

from msgspec import Raw
from msgspec.structs import replace

from gateway.judging.answers import given_twice
from gateway.judging.engagements import check_engagements
from gateway.judging.facts import debts, ledger
from gateway.judging.faults import FaultKind
from outbox.envelope import Event, encode_event
from outbox.ids import AgentId, EventId
from outbox.kinds import Kind
from outbox.records import DeliveryState, TurnState
from tests.gateway.judging.stories import ASKED, LAB, MBP, START_MS, VPS, delivery, mesh, received, witness

OWED = [
    delivery(ASKED, "bo", LAB, DeliveryState.SUPERSEDED),
    delivery(ASKED, "bo", MBP, DeliveryState.REPLIED),
]


def answer(source, number, *, engaged=True, kind=Kind.REPLY):
    event = EventId(f"evt_{number:032x}")
    said = Event(
        event_id=event, kind=kind, source_node_id=source, source_agent_id=AgentId("bo"), corr_id=ASKED,
        to_agent_id=AgentId("al"), created_at="2026-11-27T12:00:00.000Z", payload=Raw(b"1"),
    )  # fmt: skip
    row = received(event, "al", source, TurnState.DONE)
    return replace(row, kind=kind, body=encode_event(said), engaged_at_ms=START_MS if engaged else None)


def test_two_nodes_are_one_too_many():
    turns = [answer(LAB, 50), answer(MBP, 51)]
    assert list(given_twice(turns, OWED)) == [(ASKED, [LAB, MBP])]


def test_one_node_may_answer_often_and_what_nobody_had_does_not_count():
    assert list(given_twice([answer(LAB, 50), answer(LAB, 51), answer(MBP, 52, engaged=False)], OWED)) == []
    assert list(given_twice([answer(LAB, 50), answer(MBP, 51, kind=Kind.MESSAGE)], OWED)) == []


def test_an_address_of_several_and_a_node_that_was_never_asked_are_another_matter():
    turns = [answer(LAB, 50), answer(MBP, 51)]
    assert list(given_twice(turns, [replace(row, to_agent="bo,cy") for row in OWED])) == []
    assert list(given_twice(turns, OWED[:1])) == []


def test_a_run_in_which_it_happens_is_broken():
    now = mesh()
    turns = ledger([answer(LAB, 50), answer(MBP, 51)])
    now[VPS] = replace(now[VPS], received=turns, deliveries={**now[VPS].deliveries, **debts(OWED)})
    assert [fault.kind for fault in check_engagements(now, witness().account())] == [FaultKind.ENGAGED_TWICE]
