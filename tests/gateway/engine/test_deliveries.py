"""The sender's obligations: what answers change."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gateway.engine.inputs import Grant, Send
from gateway.engine.limits import ERROR_CHARS_MAX
from outbox.envelope import DeadLetter, decode_payload
from outbox.kinds import Kind
from outbox.limits import FULL_ATTEMPTS_MAX, FULL_CAP_MS
from outbox.records import DeliveryState

MINUTE_MS = 60_000


# --- answers


def test_an_ack_counts_only_from_the_node_the_event_was_routed_to(world: Any, stranger: Any) -> None:
    event = world.sent("a", "ann", "bob")
    for status in ("accepted", "processed"):
        world.tick("a", stranger.says(stranger.ack(event, status=status), to=("a",)))
    world.tick("a", stranger.says(stranger.ack(event, outcome="refused", error="not_owner"), to=("a",)))
    reply = stranger.event(kind=Kind.REPLY, corr_id=event, source_agent_id="bob", to_agent_id="ann")
    world.tick("a", stranger.says(reply, to=("a",)))
    row = world.delivery("a", event)
    assert (row.state, row.accepted_at_ms, row.replied_at_ms) == (DeliveryState.EMITTED, None, None)
    world.tick("a", stranger.says(stranger.ack("evt_" + "7" * 32), to=("a",)))


def test_a_reply_counts_only_from_the_agent_that_was_asked(routed: Any, stranger: Any) -> None:
    routed.own("mal", "x")
    routed.see()
    reply = stranger.event(kind=Kind.REPLY, corr_id=routed.event, source_agent_id="mal", to_agent_id="ann")
    routed.hear(reply)
    assert routed.delivery("a", routed.event).state is DeliveryState.EMITTED
    routed.hear(msgspec.structs.replace(reply, source_agent_id="eve", event_id="evt_" + "8" * 32))
    assert routed.delivery("a", routed.event).state is DeliveryState.REPLIED


def test_the_first_terminal_ack_is_what_counts(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, engaged_at="2026-11-27T12:00:00.001Z"))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.engaged_at_ms % 1000) == (DeliveryState.PROCESSED, "ok", 1)
    routed.advance(1_000)
    routed.hear(
        stranger.ack(routed.event, outcome="failed", error="late"),
        stranger.ack(routed.event, outcome="refused", error="later"),
        stranger.ack(routed.event, status="accepted"),
    )
    after = routed.delivery("a", routed.event)
    epoch = routed.store("a").head().epoch
    accepted = {"accepted_at_ms": routed.wall_ms, "accepted_epoch": epoch, "accepted_seq": 4}
    assert after == msgspec.structs.replace(row, **accepted)
    assert routed.incidents("a") == []


def test_a_reply_overtakes_its_processed_and_both_are_recorded(routed: Any, stranger: Any) -> None:
    reply = stranger.event(kind=Kind.REPLY, corr_id=routed.event, to_agent_id="ann")
    routed.hear(reply)
    row = routed.delivery("a", routed.event)
    assert (row.state, row.next_at_ms) == (DeliveryState.REPLIED, None)
    routed.hear(stranger.ack(routed.event))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.processed_at_ms) == (DeliveryState.REPLIED, "ok", routed.wall_ms)


def test_an_engaged_at_that_is_no_time_is_quarantined_and_changes_nothing(routed: Any, stranger: Any) -> None:
    before = routed.delivery("a", routed.event)
    routed.hear(stranger.ack(routed.event, engaged_at="yesterday"))
    assert routed.delivery("a", routed.event) == before
    assert len(routed.store("a").quarantined()) == 1


def test_an_endless_error_of_a_peer_is_cut(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, outcome="refused", error="x" * 250_000))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.error) == (DeliveryState.DEAD_LETTER, "x" * ERROR_CHARS_MAX)
    (letter,) = routed.said("a", Kind.DEAD_LETTER)
    assert decode_payload(letter, DeadLetter).last_error == "x" * ERROR_CHARS_MAX
    assert decode_payload(letter, DeadLetter).reason == "refused"


def test_done_after_it_was_given_up_is_recorded_and_reported(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, outcome="refused", error="no_recipient"))
    routed.hear(stranger.ack(routed.event))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.error) == (DeliveryState.DEAD_LETTER, "ok", "no_recipient")
    assert routed.incidents("a") == [
        ("answered_after_dead_letter", routed.event),
        ("dead_letter", routed.event),
    ]
    routed.hear(stranger.event(kind=Kind.REPLY, corr_id=routed.event, to_agent_id="ann"))
    assert routed.delivery("a", routed.event).replied_at_ms == routed.wall_ms


def test_a_cancelled_turn_is_no_second_incident(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, outcome="refused", error="no_recipient"))
    routed.hear(stranger.ack(routed.event, outcome="failed", error="cancelled"))
    assert routed.incidents("a") == [("dead_letter", routed.event)]
    assert routed.delivery("a", routed.event).error == "no_recipient"


@pytest.fixture
def crowded(make_world: Any) -> Any:
    """``bob`` has no room for ``event``, and has said so."""
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    room = world.limits.room_for(2)
    world.tick("a", *(Send(req=n, agent="ann", to="bob", payload=msgspec.Raw(b"1")) for n in range(room)))
    world.event = world.sent("a", "ann", "bob")
    world.urgent = world.sent("a", "ann", "bob", priority=0)
    world.meet()
    assert world.acks("b", world.event) == ["refused: inbox_full"]
    return world


def asked_again(world: Any) -> int:
    """The next attempt after as long as it may take; how long the row says that it takes."""
    due_ms: int = world.delivery("a", world.event).next_at_ms - world.wall_ms
    world.advance(FULL_CAP_MS)
    world.tick("a")
    world.meet()
    return due_ms


def test_a_full_inbox_is_asked_again_and_takes_it_when_there_is_room(crowded: Any) -> None:
    assert crowded.acks("b", crowded.urgent) == ["accepted"]
    row = crowded.delivery("a", crowded.event)
    assert (row.state, row.error) == (DeliveryState.RETRY_PENDING, "inbox_full")
    attempts = crowded.policy.retry.attempts_max + 3
    for _ in range(attempts):
        asked_again(crowded)
    row = crowded.delivery("a", crowded.event)
    assert (row.state, row.tries) == (DeliveryState.RETRY_PENDING, 1), "no attempt is burnt"
    for number, hand in enumerate(crowded.listen("b", "bob"), 1):
        crowded.settle("b", "bob", hand.event_id, lease_id=hand.lease_id)
        crowded.tick("b", Grant(number, "socket", 1))
    asked_again(crowded)
    row = crowded.delivery("a", crowded.event)
    assert (row.state, row.error, row.attempt) == (DeliveryState.ACCEPTED, None, attempts + 2)


def test_an_inbox_that_stays_full_is_asked_less_and_less_often_and_not_for_ever(crowded: Any) -> None:
    row = crowded.delivery("a", crowded.event)
    crowded.store("a").begin()
    crowded.store("a").put_delivery(replace(row, attempt=FULL_ATTEMPTS_MAX))
    crowded.store("a").commit()
    asked_again(crowded)
    (letter,) = crowded.said("a", Kind.DEAD_LETTER)
    assert decode_payload(letter, DeadLetter).reason == "attempts_exhausted"
    assert crowded.delivery("a", crowded.event).error == "inbox_full"


def test_what_was_accepted_and_then_found_no_room_is_not_asked_for_again(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, status="accepted"))
    routed.hear(stranger.ack(routed.event, outcome="refused", error="inbox_full"))
    assert routed.delivery("a", routed.event).state is DeliveryState.DEAD_LETTER


def test_a_failed_turn_is_an_incident(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.meet()
    (hand,) = world.listen("b", "bob")
    world.settle("b", "bob", event, lease_id=hand.lease_id, outcome="failed")
    world.meet()
    assert world.delivery("a", event).outcome == "failed"
    assert world.incidents("a") == [("turn_failed", event)]
