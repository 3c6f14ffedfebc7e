"""The steps of an event, as either node knows them."""

import pytest
from msgspec.structs import replace

from gateway.api.trace import EventTrace, Known, Stage, assemble
from outbox.envelope import Ack, DeadLetter, Event, Trace, encode_event, encode_payload
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, DeliveryState, Identity, Received, TurnState
from outbox.timestamps import rfc3339

VPS, LAB = NodeId("vps"), NodeId("lab")
EPOCH = Epoch("000001-0123456789ab")
T0 = 1_795_000_000_000


def event_id(number: int) -> EventId:
    return EventId(f"evt_{number:032x}")


X = event_id(1)
MESSAGE = Event(
    event_id=X,
    kind=Kind.MESSAGE,
    source_node_id=VPS,
    source_agent_id=AgentId("jen"),
    to_agent_id=AgentId("bob"),
    thread_id=X,
    created_at=rfc3339(T0),
)
DELIVERY = Delivery(
    event_id=X,
    kind=Kind.MESSAGE,
    from_agent=AgentId("jen"),
    to_agent=AgentId("bob"),
    node=LAB,
    state=DeliveryState.EMITTED,
    seq=Seq(7),
    thread_id=X,
    emitted_at_ms=T0,
    created_at_ms=T0,
    expires_at_ms=T0 + 1000,
    next_at_ms=None,
)
RECEIVED = Received(
    event_id=X,
    source=VPS,
    epoch=EPOCH,
    seq=Seq(7),
    kind=Kind.MESSAGE,
    to_agent=AgentId("bob"),
    body=encode_event(MESSAGE),
    state=TurnState.QUEUED,
    accepted_at_ms=T0 - 5000,
    expires_at_ms=T0 + 1000,
)


def about(number: int, kind: Kind, payload: Ack | DeadLetter | None = None, node: NodeId = LAB) -> Event:
    raw = encode_payload(payload) if payload is not None else MESSAGE.payload
    return Event(
        event_id=event_id(number),
        kind=kind,
        source_node_id=node,
        corr_id=X,
        created_at=rfc3339(T0),
        payload=raw,
    )


def trace_at(
    node: NodeId,
    *own: tuple[int, Event],
    delivery: Delivery | None = None,
    received: Received | None = None,
    event: Event = MESSAGE,
) -> EventTrace:
    known = Known(
        identity=Identity(MeshId("m" * 43), node, EPOCH),
        event=event,
        own=tuple((Seq(seq), entry) for seq, entry in own),
        deliveries=((delivery, "state"),) if delivery else (),
        received=(received,) if received else (),
    )
    return assemble(known)


def stages(trace: EventTrace) -> list[Stage]:
    return [step.stage for step in trace.steps]


def test_the_sender_knows_its_attempts_and_what_it_was_told() -> None:
    second = replace(MESSAGE, trace=Trace(attempt=2))
    row = replace(
        DELIVERY,
        attempt=2,
        emitted_at_ms=T0 + 50,
        accepted_at_ms=T0 + 60,
        engaged_at_ms=T0 + 90_000,
        processed_at_ms=T0 + 80,
        replied_at_ms=T0 + 70,
        outcome=Outcome.OK,
    )
    found = trace_at(VPS, (7, MESSAGE), (9, second), delivery=row)
    assert [(step.stage, step.node, step.clock, step.seq, step.at_ms) for step in found.steps] == [
        (Stage.EMITTED, VPS, VPS, 7, T0),
        (Stage.EMITTED, VPS, VPS, 9, T0 + 50),
        (Stage.ACCEPTED, LAB, VPS, None, T0 + 60),
        (Stage.ENGAGED, LAB, LAB, None, T0 + 90_000),
        (Stage.REPLIED, LAB, VPS, None, T0 + 70),
        (Stage.PROCESSED, LAB, VPS, None, T0 + 80),
    ]
    assert (found.to_node, found.told_by) == (LAB, VPS)


def test_a_dead_letter_names_its_reason_and_a_late_ack_follows_it() -> None:
    letter = about(3, Kind.DEAD_LETTER, DeadLetter(ref=X, reason="expired", attempts=1), VPS)
    row = replace(DELIVERY, state=DeliveryState.DEAD_LETTER, dead_at_ms=T0 + 10, accepted_at_ms=T0 + 20)
    found = trace_at(VPS, (7, MESSAGE), (8, letter), delivery=row)
    assert stages(found) == [Stage.EMITTED, Stage.DEAD_LETTER, Stage.ACCEPTED]
    assert (found.steps[1].error, found.steps[1].seq) == ("expired", 8)


def test_the_receiver_knows_positions_even_when_its_clock_is_behind() -> None:
    accepted = about(4, Kind.ACK, Ack(ref=X, status=AckStatus.ACCEPTED))
    reply = replace(about(5, Kind.REPLY), source_agent_id=RECEIVED.to_agent)
    processed = about(6, Kind.ACK, Ack(ref=X, status=AckStatus.PROCESSED))
    row = replace(
        RECEIVED,
        state=TurnState.DONE,
        engaged_at_ms=T0 - 4000,
        done_at_ms=T0 + 1,
        delivery_count=2,
        outcome=Outcome.FAILED,
        error="tired",
    )
    found = trace_at(LAB, (11, accepted), (12, reply), (13, processed), received=row)
    assert stages(found) == [Stage.EMITTED, Stage.ACCEPTED, Stage.ENGAGED, Stage.REPLIED, Stage.PROCESSED]
    emitted, first, engaged, _, last = found.steps
    assert (emitted.node, emitted.clock, emitted.seq) == (VPS, VPS, 7)
    assert (first.seq, first.event_id) == (11, event_id(4))
    assert engaged.deliveries == 2
    assert (last.seq, last.outcome, last.error) == (13, Outcome.FAILED, "tired")


def test_either_side_shows_what_the_agent_promised_last() -> None:
    promises = [
        Ack(ref=X, status=AckStatus.ACCEPTED),
        Ack(ref=X, status=AckStatus.ACCEPTED, eta_at=rfc3339(T0 + 9)),
        Ack(ref=X, status=AckStatus.ACCEPTED, eta_at=rfc3339(T0 + 8), plan_summary="write"),
    ]
    acks = [(10 + place, about(10 + place, Kind.ACK, ack)) for place, ack in enumerate(promises)]
    there = trace_at(LAB, *acks, received=RECEIVED)
    row = replace(DELIVERY, accepted_at_ms=T0, eta_at_ms=T0 + 8, plan_summary="write")
    here = trace_at(VPS, (7, MESSAGE), delivery=row)
    for found in (there, here):
        (step,) = [step for step in found.steps if step.stage is Stage.ACCEPTED]
        assert (step.eta_at_ms, step.plan_summary) == (T0 + 8, "write")
    assert [step.seq for step in there.steps] == [7, 10]
    plan_only = trace_at(
        LAB,
        (10, about(10, Kind.ACK, Ack(ref=X, status=AckStatus.ACCEPTED, plan_summary="x"))),
        received=RECEIVED,
    )
    assert (plan_only.steps[1].eta_at_ms, plan_only.steps[1].plan_summary) == (None, "x")


def test_the_first_ack_counts_when_it_was_said_again() -> None:
    acks = [about(number, Kind.ACK, Ack(ref=X, status=AckStatus.ACCEPTED)) for number in (4, 5)]
    found = trace_at(LAB, (11, acks[0]), (19, acks[1]), received=RECEIVED)
    assert [(step.stage, step.seq) for step in found.steps] == [(Stage.EMITTED, 7), (Stage.ACCEPTED, 11)]


def test_on_one_node_each_step_is_told_once() -> None:
    accepted = about(4, Kind.ACK, Ack(ref=X, status=AckStatus.ACCEPTED), VPS)
    delivery = replace(DELIVERY, node=VPS, accepted_at_ms=T0)
    found = trace_at(
        VPS, (7, MESSAGE), (8, accepted), delivery=delivery, received=replace(RECEIVED, accepted_at_ms=T0)
    )
    assert [(step.stage, step.seq) for step in found.steps] == [(Stage.EMITTED, 7), (Stage.ACCEPTED, 8)]


@pytest.mark.parametrize("node", [VPS, LAB])
def test_a_middle_attempt_has_a_position_and_no_time(node: NodeId) -> None:
    attempts = [replace(MESSAGE, trace=Trace(attempt=number), source_node_id=node) for number in (1, 2, 3)]
    row = replace(DELIVERY, attempt=3, emitted_at_ms=T0 + 99)
    found = trace_at(node, *enumerate(attempts, 7), delivery=row, event=attempts[0])
    assert [(step.attempt, step.seq, step.at_ms) for step in found.steps] == [
        (1, 7, T0),
        (2, 8, None),
        (3, 9, T0 + 99),
    ]


def test_the_relay_that_brought_it_is_named_on_either_side() -> None:
    own = ((Seq(7), MESSAGE),)
    identity = Identity(MeshId("m" * 43), VPS, EPOCH)
    row = replace(DELIVERY, accepted_at_ms=T0 + 5, state=DeliveryState.ACCEPTED, via=NodeId("seed"))
    sent = Known(identity=identity, event=MESSAGE, own=own, deliveries=((row, "accepted"),), received=())
    assert [(step.stage, step.via) for step in assemble(sent).steps] == [
        (Stage.EMITTED, None),
        (Stage.ACCEPTED, "seed"),
    ]
    there = replace(identity, node=LAB)
    came = (replace(RECEIVED, via=NodeId("seed")),)
    taken = Known(identity=there, event=MESSAGE, own=(), deliveries=(), received=came)
    assert [(step.stage, step.via) for step in assemble(taken).steps] == [
        (Stage.EMITTED, "seed"),
        (Stage.ACCEPTED, None),
    ]
