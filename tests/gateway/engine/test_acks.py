"""What a receiver says: ``accepted`` with the row, one terminal ACK ever, the same words when asked again."""

from typing import Any

import msgspec

from gateway.engine.acks import cut
from gateway.engine.limits import ERROR_CHARS_MAX
from outbox.envelope import Ack, Signal, decode_payload, encode_payload
from outbox.kinds import Kind
from outbox.timestamps import rfc3339


def ask_again(stranger: Any, event: str) -> Any:
    signal = encode_payload(Signal(signal="status_request", ref=event))
    return stranger.event(kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=signal)


def test_the_terminal_ack_says_when_it_was_engaged_and_how_often(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.advance(500)
    (hand,) = world.listen("b", "bob")
    engaged_at = rfc3339(world.wall_ms)
    world.nack("b", "bob", event, hand.lease_id)
    (hand,) = [effect for effect in world.nodes["b"].effects if getattr(effect, "delivery_count", 0) == 2]
    world.advance(500)
    world.settle("b", "bob", event, lease_id=hand.lease_id, outcome="failed", error="no\nway")
    ack = decode_payload(world.said("b", Kind.ACK)[-1], Ack)
    assert ack == Ack(
        ref=event, status="processed", outcome="failed", error="no\nway", engaged_at=engaged_at, deliveries=2
    )


def test_an_error_of_any_length_fits_into_an_ack(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    (hand,) = world.listen("b", "bob")
    trace = "x" * 300_000
    assert (
        world.settle("b", "bob", event, lease_id=hand.lease_id, outcome="failed", error=trace).duplicate
        is False
    )
    assert world.acks("b", event) == ["accepted", "failed: " + "x" * ERROR_CHARS_MAX]
    assert (cut(None), cut("")) == (None, "")


def test_asked_again_the_same_acks_come_as_their_next_attempts(world: Any, stranger: Any) -> None:
    world.own("eve", "x")
    world.see()
    message = stranger.event()
    world.tick("b", stranger.says(message))
    (hand,) = world.listen("b", "bob")
    world.settle("b", "bob", message.event_id, lease_id=hand.lease_id)
    accepted, processed = world.said("b", Kind.ACK)
    for attempt in (2, 3):
        world.tick("b", stranger.says(ask_again(stranger, message.event_id)))
        repeated = world.said("b", Kind.ACK)[-2:]
        assert [ack.event_id for ack in repeated] == [accepted.event_id, processed.event_id]
        assert [ack.trace.attempt for ack in repeated] == [attempt, attempt]
        assert [ack.trace.first_position[1] for ack in repeated] == [1, 2]
        assert [bytes(ack.payload) for ack in repeated] == [bytes(accepted.payload), bytes(processed.payload)]
    world.verify()


def test_asked_twice_in_one_page_it_answers_once(world: Any, stranger: Any) -> None:
    world.own("eve", "x")
    world.see()
    message = stranger.event()
    again = msgspec.structs.replace(message, trace=msgspec.structs.replace(message.trace, attempt=2))
    world.tick("b", stranger.says(message, again, ask_again(stranger, message.event_id)))
    assert world.acks("b", message.event_id) == ["accepted"]
    third = msgspec.structs.replace(message, trace=msgspec.structs.replace(message.trace, attempt=3))
    world.tick("b", stranger.says(third, ask_again(stranger, message.event_id)))
    assert world.acks("b", message.event_id) == ["accepted", "accepted"]
    assert len({ack.event_id for ack in world.said("b", Kind.ACK)}) == 1


def test_a_refusal_of_an_earlier_attempt_is_not_repeated(world: Any, stranger: Any) -> None:
    world.own("eve", "x")
    world.see()
    message = stranger.event(to_agent_id="ben")
    world.tick("b", stranger.says(message))
    world.live("b", "ben")
    for attempt in (2, 3):
        trace = msgspec.structs.replace(message.trace, attempt=attempt)
        world.tick("b", stranger.says(msgspec.structs.replace(message, trace=trace)))
    assert world.acks("b", message.event_id) == ["refused: not_owner", "accepted", "accepted"]


def test_nobody_learns_of_the_events_of_others(world: Any, stranger: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    said = len(world.said("b"))
    unknown = "evt_" + "7" * 32
    world.tick("b", stranger.says(ask_again(stranger, event), ask_again(stranger, unknown)))
    told = [decode_payload(each, Signal) for each in world.said("b")[said:]]
    assert told == [Signal(signal="status_unknown", ref=each) for each in (event, unknown)]
    said += 2
    other = stranger.event(kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None)
    presence = encode_payload(Signal(signal="presence"))
    world.tick("b", stranger.says(msgspec.structs.replace(other, payload=presence)))
    assert len(world.said("b")) == said
    assert world.store("b").quarantined() == []
