"""What an agent says of its work while it works: told, kept, said again, and nothing else changed by it."""

from typing import Any

import msgspec
import pytest

from gateway.engine.effects import Extended, Handed
from gateway.engine.inputs import Extend
from gateway.engine.limits import ERROR_CHARS_MAX
from outbox.envelope import Ack, decode_payload
from outbox.kinds import Kind
from outbox.timestamps import parse_rfc3339

ETA, LATER = "2026-11-27T12:00:00.000Z", "2026-11-27T13:00:00.000Z"


@pytest.fixture
def held(queued: Any) -> Any:
    """``bob`` holds the turn."""
    (queued.hand,) = queued.listen("b", "bob")
    queued.pull("a", "b")
    return queued


def extend(world: Any, **promise: Any) -> Any:
    request = Extend(
        req=7,
        agent="bob",
        event_id=world.hand.event_id,
        lease_id=world.hand.lease_id,
        lease_ms=90_000,
        **promise,
    )
    return world.ask("b", request)


def told(world: Any) -> list[tuple[str | None, str | None]]:
    """The promises in the outbox of ``b``."""
    acks = [decode_payload(event, Ack) for event in world.said("b", Kind.ACK)]
    return [(ack.eta_at, ack.plan_summary) for ack in acks if ack.promises]


def test_the_sender_keeps_what_is_promised_and_goes_by_its_own_clock(held: Any) -> None:
    before = held.delivery("a", held.event)
    assert extend(held, eta_at=ETA, plan_summary="read, then write") == Extended(7, held.event, 90_000)
    held.advance(5)
    held.pull("a", "b")
    promised = {"eta_at_ms": parse_rfc3339(ETA), "plan_summary": "read, then write"}
    assert held.delivery("a", held.event) == msgspec.structs.replace(before, **promised)
    assert held.incidents("a") == []


def test_both_together_stand_in_place_of_what_was_said_before(held: Any) -> None:
    extend(held, eta_at=ETA, plan_summary="read")
    extend(held, eta_at="2026-11-27T14:00:00+01:00")
    held.pull("a", "b")
    row = held.delivery("a", held.event)
    assert (row.eta_at_ms, row.plan_summary) == (parse_rfc3339(LATER), None)
    assert told(held) == [(ETA, "read"), (LATER, None)]


def test_the_same_again_or_nothing_is_not_told(held: Any) -> None:
    extend(held)
    extend(held, eta_at=ETA)
    extend(held, eta_at=ETA)
    extend(held)
    assert told(held) == [(ETA, None)]
    extend(held, eta_at=LATER)
    extend(held, eta_at=ETA)
    assert told(held) == [(ETA, None), (LATER, None), (ETA, None)]


@pytest.mark.parametrize(
    "wrong",
    [{"eta_at": "soon"}, {"eta_at": ""}, {"plan_summary": ""}, {"plan_summary": "p" * (ERROR_CHARS_MAX + 1)}],
)
def test_what_is_no_promise_is_refused_and_prolongs_nothing(
    held: Any, only: Any, wrong: dict[str, str]
) -> None:
    assert extend(held, **wrong).code == "invalid_event"
    assert told(held) == []
    held.advance(held.limits.lease_ms)
    assert len(only(held.tick("b"), Handed)) == 1


def test_without_the_lease_nothing_is_promised(held: Any) -> None:
    held.hand = msgspec.structs.replace(held.hand, lease_id="other")
    assert extend(held, eta_at=ETA).code == "conflict"
    assert told(held) == []


def test_nobody_is_told_of_a_turn_that_nobody_waits_for(held: Any) -> None:
    held.reply("b", "bob", held.event, lease_id=held.hand.lease_id)
    held.meet()
    (hand,) = held.listen("a", "ann")
    request = Extend(
        req=8, agent="ann", event_id=hand.event_id, lease_id=hand.lease_id, lease_ms=1, eta_at=ETA
    )
    assert isinstance(held.ask("a", request), Extended)
    assert held.acks("a", hand.event_id) == ["accepted"]


def test_asked_again_it_says_what_was_promised_last(open_door: Any, stranger: Any) -> None:
    message = stranger.event()
    open_door.tick("b", stranger.says(message))
    (open_door.hand,) = open_door.listen("b", "bob")
    for eta_at in (ETA, LATER):
        extend(open_door, eta_at=eta_at)
    for attempt in (2, 3):
        trace = msgspec.structs.replace(message.trace, attempt=attempt)
        open_door.tick("b", stranger.says(msgspec.structs.replace(message, trace=trace)))
    repeated = [event for event in open_door.said("b", Kind.ACK) if event.trace.attempt > 1]
    said = [(event.trace.attempt, decode_payload(event, Ack).eta_at) for event in repeated]
    assert said == [(2, None), (2, LATER), (3, None), (3, LATER)]


def test_a_promise_that_is_heard_first_is_the_acceptance(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("b", "bob", "eve")
    open_door.tick("b", stranger.says(stranger.ack(event, status="accepted", plan_summary="p" * 9_000)))
    row = open_door.delivery("b", event)
    assert (row.state, row.accepted_seq, row.plan_summary) == ("accepted", 1, "p" * ERROR_CHARS_MAX)
    open_door.tick("b", stranger.says(stranger.ack(event, status="accepted")))
    row = open_door.delivery("b", event)
    assert (row.accepted_seq, row.plan_summary) == (2, "p" * ERROR_CHARS_MAX)


def test_a_time_that_is_none_is_quarantined(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("b", "bob", "eve")
    open_door.tick("b", stranger.says(stranger.ack(event, status="accepted", eta_at="soon")))
    assert open_door.delivery("b", event).state == "emitted"
    assert [kind for kind, _ in open_door.incidents("b")] == ["quarantined"]
