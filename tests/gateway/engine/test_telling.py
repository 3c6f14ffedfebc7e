"""What a node is told of its own past; how much at once is in ``test_recall``."""

from copy import deepcopy
from typing import Any

import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.policy import Policy
from outbox.envelope import decode_payload, encode_payload
from outbox.ids import MeshId, NodeId, make_epoch
from outbox.kinds import Kind
from outbox.memory import MemoryStore
from outbox.recall import RECALLED, Recall, Recalled
from outbox.records import Identity

MESH = MeshId("mesh-" + "x" * 38)
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


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_named_is_told_in_parts_and_before_the_last_word(
    make_world: Any, counting: Any, stranger: Any, *, restarts: bool
) -> None:
    """A thousand events fit into one question, and a page holds many of them."""
    most = []
    for sent in (40, 160):
        world = make_world(limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=5))
        world.join("a", counting(MemoryStore(Identity(MESH, NodeId("a"), make_epoch(1, b"\x01" * 6)))))
        world.own("eve", "x")
        world.live("a", "ann")
        peer = deepcopy(stranger)
        events = [world.sent("a", "ann", "eve") for _ in range(sent)]
        for event in events:
            world.tick("a", peer.says(peer.ack(event, status="accepted"), to=("a",)))
        read = (world.epoch_of("a"), world.store("a").head().seq)
        half = sent // 2
        asked = [
            Recall(since=SINCE, read=read, open=tuple(events[:half]), more=True),
            Recall(since=SINCE, read=read, open=tuple(events[half:])),
        ]
        said = [peer.event(kind=Kind.SIGNAL, source_agent_id=None, payload=encode_payload(q)) for q in asked]
        world.store("a").most = 0
        world.tick("a", peer.says(*said, to=("a",)))
        world.run_errands("a", restarts=restarts)
        most.append(world.store("a").most)
        signals = [e for e in world.history("a") if RECALLED.encode() in bytes(e.payload)]
        told = [decode_payload(event, Recalled) for event in signals]
        assert [event for each in told for event in each.accepted] == events
        assert [each.more for each in told] == [True] * (len(told) - 1) + [False]
    assert most[1] <= most[0]
