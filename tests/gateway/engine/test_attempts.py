"""The next attempt: when, where to, and how many."""

from typing import Any

import msgspec

from outbox.envelope import DeadLetter, decode_payload
from outbox.kinds import Kind
from outbox.records import DeliveryState

MINUTE_MS = 60_000


def test_refused_by_a_former_owner_it_is_routed_anew(make_world: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob")
    event = world.sent("a", "ann", "bob")
    world.leave("b", "bob")
    world.own("bob", "b", 1, active=False)
    world.see("c")
    world.live("c", "bob")
    world.pull("b", "a")
    assert world.acks("b", event) == ["refused: not_owner"]
    world.pull("a", "b")
    row = world.delivery("a", event)
    assert (row.state, row.error, row.attempt) == (DeliveryState.RETRY_PENDING, "not_owner", 1)
    world.wake("a")
    row = world.delivery("a", event)
    assert (row.state, row.attempt, row.node) == (DeliveryState.EMITTED, 2, "c")
    first, second = world.said("a", Kind.MESSAGE)
    assert second == msgspec.structs.replace(
        first,
        payload=second.payload,
        trace=msgspec.structs.replace(
            first.trace,
            attempt=2,
            first_position=(world.store("a").head().epoch, 1),
            route_decision=msgspec.structs.replace(
                first.trace.route_decision, owner_node_id="c", owner_epoch=2
            ),
        ),
    )
    world.meet()
    row = world.delivery("a", event)
    assert (row.state, row.error) == (DeliveryState.ACCEPTED, None)
    assert world.acks("c", event) == ["accepted"]


def test_a_refusal_in_the_own_house_waits_for_a_later_tick(world: Any) -> None:
    """With no wait at all the retry would look for an attempt that is not in the store yet."""
    world.live("a", "amy")
    world.leave("a", "amy")
    world.nodes["a"].entropy.chance = 0.0
    event = world.sent("a", "ann", "amy")
    row = world.delivery("a", event)
    assert (row.state, row.next_at_ms) == (DeliveryState.RETRY_PENDING, world.wall_ms + 1)


def test_refused_everywhere_it_is_given_up_after_the_last_attempt(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.leave("b", "bob")
    while world.delivery("a", event).state is not DeliveryState.DEAD_LETTER:
        world.meet()
        world.wake("a")
    row = world.delivery("a", event)
    assert (row.attempt, row.error) == (3, "not_owner")
    letter = decode_payload(world.said("a", Kind.DEAD_LETTER)[0], DeadLetter)
    assert letter == DeadLetter(ref=event, reason="attempts_exhausted", attempts=3, last_error="not_owner")
    assert world.acks("b", event) == ["refused: not_owner"] * 3


def test_without_any_owner_it_waits_burns_no_attempt_and_is_an_incident(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=60 * MINUTE_MS)
    world.leave("b", "bob")
    world.meet()
    world.own("bob", "b", 1, active=False)
    world.see()
    while world.wall_ms < world.delivery("a", event).created_at_ms + world.policy.sla_accept_ms:
        world.wake("a")
    row = world.delivery("a", event)
    assert (row.state, row.attempt) == (DeliveryState.RETRY_PENDING, 1)
    assert world.incidents("a") == [("never_accepted", event)]
    world.live("b", "bob")
    world.wake("a")
    assert world.delivery("a", event).attempt == 2
    world.meet()
    assert world.delivery("a", event).state is DeliveryState.ACCEPTED
    assert world.incidents("a") == []


def test_without_any_owner_it_ends_when_it_expires(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=MINUTE_MS)
    world.leave("b", "bob")
    world.meet()
    world.own("bob", "b", 1, active=False)
    world.see()
    while world.delivery("a", event).next_at_ms is not None:
        world.wake("a")
    assert world.wall_ms == world.delivery("a", event).expires_at_ms
    letter = decode_payload(world.said("a", Kind.DEAD_LETTER)[0], DeadLetter)
    assert (letter.reason, letter.last_error) == ("expired", "not_owner")
