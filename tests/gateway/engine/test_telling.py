"""What a node is told of its own past; how much at once is in ``test_recall``."""

from typing import Any

from outbox.envelope import decode_payload, encode_payload
from outbox.ids import NodeId, make_epoch
from outbox.kinds import Kind
from outbox.recall import RECALLED, Recall, Recalled

SINCE = make_epoch(2, b"\x01" * 6)


def answers(world: Any, stranger: Any, *questions: Recall) -> list[Recalled]:
    for question in questions:
        payload = encode_payload(question)
        world.hear(stranger.event(kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=payload))
    events = [event for event in world.said("a", Kind.SIGNAL) if RECALLED.encode() in bytes(event.payload)]
    return [decode_payload(event, Recalled) for event in events]


def test_what_was_only_sent_is_nothing_to_tell(routed: Any, stranger: Any) -> None:
    question = Recall(since=SINCE, read=None)
    assert answers(routed, stranger, question) == [Recalled(since=SINCE)]


def test_what_was_named_and_read_is_told_before_the_question_is_over(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, status="accepted"))
    read = (routed.epoch_of("a"), routed.delivery("a", routed.event).seq)
    first = Recall(since=SINCE, read=read, open=(routed.event,), more=True)
    told = answers(routed, stranger, first, Recall(since=SINCE, read=read))
    assert told == [Recalled(since=SINCE, accepted=(routed.event,), more=True), Recalled(since=SINCE)]


def test_what_was_not_read_is_told_without_being_named(routed: Any, stranger: Any) -> None:
    routed.hear(stranger.ack(routed.event, outcome="ok"))
    (told,) = answers(routed, stranger, Recall(since=SINCE, read=None))
    assert [(ended.ref, ended.outcome) for ended in told.ended] == [(routed.event, "ok")]
    assert routed.delivery("a", routed.event).node == NodeId("x")


def test_what_was_sent_by_a_clock_that_was_ahead_is_told_too(routed: Any, stranger: Any) -> None:
    """Its id is dated later than the question (seed 940022)."""
    routed.hear(stranger.ack(routed.event, outcome="ok"))
    routed.wall_ms -= 48 * 3_600_000
    routed.restart("a")
    (told,) = answers(routed, stranger, Recall(since=SINCE, read=None))
    assert [ended.ref for ended in told.ended] == [routed.event]
