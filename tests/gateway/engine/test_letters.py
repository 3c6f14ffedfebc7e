"""A dead letter is an event that both sides see, an incident, and the end of the incidents before it."""

from typing import Any

from outbox.envelope import DeadLetter, decode_header, decode_payload
from outbox.kinds import Kind
from outbox.records import DeliveryState


def test_whoever_was_asked_hears_that_it_is_over(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=3_600_000)
    while world.delivery("a", event).state is not DeliveryState.DEAD_LETTER:
        world.wake("a")
    (letter,) = world.said("a", Kind.DEAD_LETTER)
    told = decode_payload(letter, DeadLetter)
    assert (told.ref, told.reason, told.attempts) == (event, "expired", 1)
    assert (letter.corr_id, letter.source_agent_id) == (event, None)
    page = world.page("b", "a")
    assert [decode_header(entry.header).to for entry in page.entries] == [("b",), ("b",)]
    assert world.incidents("a") == [("dead_letter", event)]


def test_what_was_for_nobody_is_told_to_nobody(world: Any) -> None:
    world.own("gone", "b", active=False)
    world.see()
    event = world.sent("a", "ann", "gone")
    page = world.page("b", "a")
    assert [decode_header(entry.header).to for entry in page.entries] == [(), ()]
    assert world.delivery("a", event).error == "no_owner"
