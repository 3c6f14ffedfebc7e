"""What silence changes: lost attempts, overdue turns, expiry. Every send ends."""

from typing import Any

import msgspec
import pytest

from gateway.engine.inputs import PageRead
from outbox.chain import extend, genesis, sign_checkpoint
from outbox.envelope import DeadLetter, Signal, decode_payload
from outbox.kinds import Kind
from outbox.records import DeliveryState
from stateroom.view import CursorsView

MINUTE_MS = 60_000


def lose_an_acceptance(world: Any) -> str:
    """``b`` accepts, and its ACK reaches ``a`` as something that cannot be read."""
    event = world.sent("a", "ann", "bob")
    world.pull("b", "a")
    page = world.page("a", "b")
    node = world.nodes["b"]
    mangled = msgspec.structs.replace(page.entries[0], body=b"{}")
    head = extend(genesis(page.checkpoint.mesh, node.name, page.epoch), [mangled])
    checkpoint = sign_checkpoint(page.checkpoint.mesh, node.name, head, node.sign)
    world.tick("a", PageRead("b", msgspec.structs.replace(page, entries=(mangled,), checkpoint=checkpoint)))
    return event


def test_a_lost_acceptance_is_asked_for_again_with_the_same_event(world: Any) -> None:
    event = lose_an_acceptance(world)
    world.publish("b")
    world.advance(world.policy.retry.ack_timeout_ms - 1)
    world.see("a")
    assert world.delivery("a", event).state is DeliveryState.EMITTED
    world.wake("a")
    assert world.delivery("a", event).state is DeliveryState.RETRY_PENDING
    world.wake("a")
    row = world.delivery("a", event)
    assert (row.state, row.attempt) == (DeliveryState.EMITTED, 2)
    world.pull("b", "a")
    assert world.acks("b", event) == ["accepted", "accepted"]
    first, again = world.said("b", Kind.ACK)
    assert (first.event_id, again.trace.attempt) == (again.event_id, 2)
    assert world.store("b").count_received() == {"queued": 1}


def test_the_cursor_may_come_after_the_timeout(world: Any) -> None:
    event = lose_an_acceptance(world)
    world.wake("a")
    assert world.delivery("a", event).state is DeliveryState.EMITTED
    world.publish("b")
    world.see("a")
    assert world.delivery("a", event).state is DeliveryState.RETRY_PENDING


def test_the_stream_may_come_after_the_cursor(world: Any, stranger: Any) -> None:
    world.own("eve", "x")
    world.see()
    event = world.sent("a", "ann", "eve")
    epoch = world.store("a").head().epoch
    world.cursors["x"] = CursorsView(cursors={"a": (epoch, 1)}, head=(epoch, 2))
    world.advance(11_000)
    world.see("a")
    world.tick("a", stranger.says(stranger.event(), to=()))
    assert world.delivery("a", event).state is DeliveryState.EMITTED
    world.tick("a", stranger.says(stranger.event(), to=()))
    assert world.delivery("a", event).state is DeliveryState.RETRY_PENDING


@pytest.mark.parametrize(
    "published",
    [
        None,
        {"cursors": {}, "head": ("000001-0123456789ab", 1)},
        {"cursors": {"a": ("000001-0123456789ab", 0)}, "head": ("000001-0123456789ab", 1)},
        {"cursors": {"a": ("000002-0123456789ab", 9)}, "head": ("000001-0123456789ab", 1)},
        {"cursors": {"a": ("000001-0123456789ab", 1)}, "head": ("000001-0123456789ab", 2)},
        {"cursors": {"a": ("000001-0123456789ab", 1)}, "head": ("000002-0123456789ab", 1)},
    ],
    ids=["silence", "never-read-us", "not-so-far", "another-epoch", "more-to-read", "a-newer-epoch"],
)
def test_nothing_is_retried_while_the_owner_is_merely_away(
    world: Any, stranger: Any, published: dict[str, Any] | None
) -> None:
    world.own("eve", "x")
    world.see()
    world.tick("a", stranger.says(stranger.event(), to=()))
    event = world.sent("a", "ann", "eve", expires_in_ms=60 * MINUTE_MS)
    if published is not None:
        world.cursors["x"] = CursorsView(**published)
    for _ in range(2):
        world.wake("a")
        world.see("a")
    row = world.delivery("a", event)
    assert (row.state, row.attempt) == (DeliveryState.EMITTED, 1)
    assert world.incidents("a") == [("never_accepted", event)]
    world.wake("a")
    assert world.delivery("a", event).state is DeliveryState.DEAD_LETTER
    assert world.wall_ms == row.expires_at_ms
    assert world.incidents("a") == [("dead_letter", event)]


def test_expired_at_the_sender_it_is_cancelled_at_the_receiver(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=5 * MINUTE_MS)
    world.pull("b", "a")
    world.advance(5 * MINUTE_MS)
    world.tick("a")
    assert world.delivery("a", event).state is DeliveryState.DEAD_LETTER
    world.meet()
    assert world.acks("b", event)[0] == "accepted"
    assert len(world.acks("b", event)) == 2
    assert world.incidents("a") == [("dead_letter", event)]
    assert world.delivery("a", event).outcome == "failed"


def test_overdue_is_an_incident_and_one_question_and_processing_closes_it(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.meet()
    world.wake("a")
    assert world.wall_ms == world.delivery("a", event).accepted_at_ms + world.policy.sla_process_ms
    assert world.incidents("a") == [("accepted_not_processed", event)]
    (signal,) = world.said("a", Kind.SIGNAL)
    assert signal.corr_id == event
    assert decode_payload(signal, Signal) == Signal(signal="status_request", ref=event)
    world.meet()
    assert world.acks("b", event) == ["accepted", "accepted"]
    world.advance(MINUTE_MS)
    world.tick("a")
    assert len(world.said("a", Kind.SIGNAL)) == 1
    world.settle("b", "bob", event)
    world.meet()
    assert world.delivery("a", event).state is DeliveryState.PROCESSED
    assert world.incidents("a") == []
    assert world.nodes["a"].engine.next_wake_ms(world.now()) is None


def test_overdue_twice_is_still_one_question(routed: Any, stranger: Any) -> None:
    accepted = stranger.ack(routed.event, status="accepted")
    routed.hear(accepted)
    routed.wake("a")
    routed.hear(stranger.ack(routed.event, outcome="refused", error="not_owner"))
    assert routed.delivery("a", routed.event).state is DeliveryState.RETRY_PENDING
    routed.wake("a")
    routed.hear(msgspec.structs.replace(accepted, event_id="evt_" + "8" * 32))
    routed.wake("a")
    assert routed.incidents("a") == [("accepted_not_processed", routed.event)]
    assert len(routed.said("a", Kind.SIGNAL)) == 1


def test_a_day_of_silence_after_its_expiry_is_the_end(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=MINUTE_MS)
    world.meet()
    world.wake("a")
    world.wake("a")
    row = world.delivery("a", event)
    assert row.state is DeliveryState.DEAD_LETTER
    assert world.wall_ms == row.expires_at_ms + world.policy.silence_ms
    letter = decode_payload(world.said("a", Kind.DEAD_LETTER)[0], DeadLetter)
    assert letter.reason == "silence"
    world.meet()
    assert world.acks("b", event)[-1].startswith("failed")
