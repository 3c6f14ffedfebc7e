"""The sender's obligations: what answers change, what silence does, how every send ends."""

from typing import Any

import msgspec
import pytest

from gateway.engine.inputs import PageRead, Send
from gateway.engine.limits import ERROR_CHARS_MAX
from outbox.chain import extend, genesis, sign_checkpoint
from outbox.envelope import Ack, DeadLetter, Signal, decode_payload, encode_payload
from outbox.kinds import Kind
from outbox.records import DeliveryState
from stateroom.view import CursorsView

MINUTE_MS = 60_000


def ack(stranger: Any, ref: str, **fields: Any) -> Any:
    payload = encode_payload(Ack(**{"ref": ref, "status": "processed", **fields}))
    return stranger.event(kind=Kind.ACK, corr_id=ref, source_agent_id=None, to_agent_id=None, payload=payload)


@pytest.fixture
def routed(make_world: Any, stranger: Any) -> Any:
    """``eve`` lives on the hand-written node ``x``; ``ann`` has written to her."""
    world = make_world("a")
    world.own("eve", "x")
    world.live("a", "ann")
    world.event = world.sent("a", "ann", "eve")
    world.hear = lambda *events: world.tick("a", stranger.says(*events, to=("a",)))
    return world


# --- answers


def test_an_ack_counts_only_from_the_node_the_event_was_routed_to(world: Any, stranger: Any) -> None:
    event = world.sent("a", "ann", "bob")
    for status in ("accepted", "processed"):
        world.tick("a", stranger.says(ack(stranger, event, status=status), to=("a",)))
    world.tick("a", stranger.says(ack(stranger, event, outcome="refused", error="not_owner"), to=("a",)))
    reply = stranger.event(kind=Kind.REPLY, corr_id=event, source_agent_id="bob", to_agent_id="ann")
    world.tick("a", stranger.says(reply, to=("a",)))
    row = world.delivery("a", event)
    assert (row.state, row.accepted_at_ms, row.replied_at_ms) == (DeliveryState.EMITTED, None, None)
    world.tick("a", stranger.says(ack(stranger, "evt_" + "7" * 32), to=("a",)))


def test_a_reply_counts_only_from_the_agent_that_was_asked(routed: Any, stranger: Any) -> None:
    routed.own("mal", "x")
    routed.see()
    reply = stranger.event(kind=Kind.REPLY, corr_id=routed.event, source_agent_id="mal", to_agent_id="ann")
    routed.hear(reply)
    assert routed.delivery("a", routed.event).state is DeliveryState.EMITTED
    routed.hear(msgspec.structs.replace(reply, source_agent_id="eve", event_id="evt_" + "8" * 32))
    assert routed.delivery("a", routed.event).state is DeliveryState.REPLIED


def test_the_first_terminal_ack_is_what_counts(routed: Any, stranger: Any) -> None:
    routed.hear(ack(stranger, routed.event, engaged_at="2026-11-27T12:00:00.001Z"))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.engaged_at_ms % 1000) == (DeliveryState.PROCESSED, "ok", 1)
    routed.advance(1_000)
    routed.hear(
        ack(stranger, routed.event, outcome="failed", error="late"),
        ack(stranger, routed.event, outcome="refused", error="later"),
        ack(stranger, routed.event, status="accepted"),
    )
    after = routed.delivery("a", routed.event)
    assert after == msgspec.structs.replace(row, accepted_at_ms=routed.wall_ms)
    assert routed.incidents("a") == []


def test_a_reply_overtakes_its_processed_and_both_are_recorded(routed: Any, stranger: Any) -> None:
    reply = stranger.event(kind=Kind.REPLY, corr_id=routed.event, to_agent_id="ann")
    routed.hear(reply)
    row = routed.delivery("a", routed.event)
    assert (row.state, row.next_at_ms) == (DeliveryState.REPLIED, None)
    routed.hear(ack(stranger, routed.event))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.processed_at_ms) == (DeliveryState.REPLIED, "ok", routed.wall_ms)


def test_an_engaged_at_that_is_no_time_is_quarantined_and_changes_nothing(routed: Any, stranger: Any) -> None:
    before = routed.delivery("a", routed.event)
    routed.hear(ack(stranger, routed.event, engaged_at="yesterday"))
    assert routed.delivery("a", routed.event) == before
    assert len(routed.store("a").quarantined()) == 1


def test_an_endless_error_of_a_peer_is_cut(routed: Any, stranger: Any) -> None:
    routed.hear(ack(stranger, routed.event, outcome="refused", error="x" * 250_000))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.error) == (DeliveryState.DEAD_LETTER, "x" * ERROR_CHARS_MAX)
    (letter,) = routed.said("a", Kind.DEAD_LETTER)
    assert decode_payload(letter, DeadLetter).last_error == "x" * ERROR_CHARS_MAX
    assert decode_payload(letter, DeadLetter).reason == "refused"


def test_done_after_it_was_given_up_is_recorded_and_reported(routed: Any, stranger: Any) -> None:
    routed.hear(ack(stranger, routed.event, outcome="refused", error="inbox_full"))
    routed.hear(ack(stranger, routed.event))
    row = routed.delivery("a", routed.event)
    assert (row.state, row.outcome, row.error) == (DeliveryState.DEAD_LETTER, "ok", "inbox_full")
    assert routed.incidents("a") == [
        ("answered_after_dead_letter", routed.event),
        ("dead_letter", routed.event),
    ]
    routed.hear(stranger.event(kind=Kind.REPLY, corr_id=routed.event, to_agent_id="ann"))
    assert routed.delivery("a", routed.event).replied_at_ms == routed.wall_ms


def test_a_cancelled_turn_is_no_second_incident(routed: Any, stranger: Any) -> None:
    routed.hear(ack(stranger, routed.event, outcome="refused", error="inbox_full"))
    routed.hear(ack(stranger, routed.event, outcome="failed", error="cancelled"))
    assert routed.incidents("a") == [("dead_letter", routed.event)]
    assert routed.delivery("a", routed.event).error == "inbox_full"


def test_a_full_inbox_refuses_and_the_event_is_a_dead_letter(make_world: Any) -> None:
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    room = world.limits.room_for(2)
    world.tick("a", *(Send(req=n, agent="ann", to="bob", payload=msgspec.Raw(b"1")) for n in range(room)))
    event = world.sent("a", "ann", "bob")
    urgent = world.sent("a", "ann", "bob", priority=0)
    world.meet()
    assert world.acks("b", event) == ["refused: inbox_full"]
    assert world.acks("b", urgent) == ["accepted"]
    row = world.delivery("a", event)
    assert (row.state, row.error) == (DeliveryState.DEAD_LETTER, "inbox_full")


# --- retries


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


# --- silence after acceptance


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
    accepted = ack(stranger, routed.event, status="accepted")
    routed.hear(accepted)
    routed.wake("a")
    routed.hear(ack(stranger, routed.event, outcome="refused", error="not_owner"))
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


def test_a_failed_turn_is_an_incident(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.meet()
    (hand,) = world.listen("b", "bob")
    world.settle("b", "bob", event, lease_id=hand.lease_id, outcome="failed")
    world.meet()
    assert world.delivery("a", event).outcome == "failed"
    assert world.incidents("a") == [("turn_failed", event)]
