"""One event, one obligation and one receipt for each node that it goes to; on each one turn an agent."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.effects import Handed
from gateway.engine.inputs import RemoveAgent
from outbox.envelope import decode_header
from outbox.kinds import Kind
from outbox.records import DeliveryState, Share, TurnState


@pytest.fixture
def crowd(make_world: Any) -> Any:
    """``ann`` and ``amy`` live at ``a``, ``bob`` and ``ben`` at ``b``, ``cat`` at ``c``."""
    world = make_world("a", "b", "c")
    world.live("a", "ann", "amy")
    world.live("b", "bob", "ben", groups=("ops",))
    world.live("c", "cat", groups=("ops",))
    return world


def states(world: Any, event: str) -> dict[str, str]:
    return {row.node: str(row.state) for row in world.store("a").obligations(event)}


def turns(world: Any, node: str, event: str) -> dict[str, str]:
    return {row.to_agent: str(row.state) for row in world.store(node).turns_of("a", event)}


def test_a_broadcast_has_one_receipt_a_node(crowd: Any) -> None:
    answer = crowd.send("a", "ann", "*")
    event = answer.event_id
    assert answer.nodes == ("a", "b", "c")
    (sent,) = crowd.said("a", Kind.MESSAGE)
    assert (sent.to_agent_id, sent.to_agents) == (None, ())
    crowd.meet()
    assert states(crowd, event) == dict.fromkeys("abc", "accepted")
    assert turns(crowd, "a", event) == {"amy": "queued"}
    assert turns(crowd, "b", event) == {"bob": "queued", "ben": "queued"}
    assert crowd.acks("b", event) == ["accepted"]
    for agent in ("bob", "ben"):
        assert crowd.acks("b", event) == ["accepted"], "the node has ended it when all have"
        (hand,) = crowd.listen("b", agent, f"socket-{agent}")
        crowd.settle("b", agent, event, lease_id=hand.lease_id)
    assert crowd.acks("b", event) == ["accepted", "ok"]
    crowd.meet()
    assert states(crowd, event) == {"a": "accepted", "b": "processed", "c": "accepted"}
    assert crowd.incidents("a") == []


def test_one_that_failed_fails_its_nodes_receipt_and_no_other(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "group:ops")
    crowd.meet()
    for node, agent, outcome in [("b", "bob", "failed"), ("b", "ben", "ok"), ("c", "cat", "ok")]:
        (hand,) = crowd.listen(node, agent, f"socket-{agent}")
        error = "no idea" if outcome == "failed" else None
        crowd.settle(node, agent, event, lease_id=hand.lease_id, outcome=outcome, error=error)
    crowd.meet()
    assert crowd.acks("b", event) == ["accepted", "failed: 1 of 2: bob: no idea"]
    assert {row.node: row.outcome for row in crowd.store("a").obligations(event)} == {
        "b": "failed",
        "c": "ok",
    }


def test_the_same_agent_named_twice_gets_it_once(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "bob,cat,bob@b")
    crowd.meet()
    assert (turns(crowd, "b", event), turns(crowd, "c", event)) == ({"bob": "queued"}, {"cat": "queued"})


def test_an_answer_of_any_of_them_counts_for_its_node(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "bob,ben,cat")
    crowd.meet()
    (hand,) = crowd.listen("b", "ben")
    crowd.reply("b", "ben", event, lease_id=hand.lease_id)
    crowd.meet()
    assert states(crowd, event) == {"b": "replied", "c": "accepted"}


def test_a_retry_goes_to_the_node_that_lost_it_alone(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "bob,cat")
    crowd.leave("b", "bob")
    crowd.meet()
    assert crowd.acks("b", event) == ["refused: no_recipient"]
    assert states(crowd, event) == {"b": "dead_letter", "c": "accepted"}


def test_every_attempt_has_a_number_of_its_own(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "bob,cat")
    store = crowd.store("a")
    first = store.head()
    store.begin()
    for row in store.obligations(event):
        store.put_delivery(replace(row, state=DeliveryState.RETRY_PENDING, next_at_ms=crowd.wall_ms))
    store.commit()
    crowd.tick("a")
    assert {row.node: row.attempt for row in store.obligations(event)} == {"b": 2, "c": 3}
    assert {row.tries for row in store.obligations(event)} == {2}
    again = store.read(first, 10, 1 << 20).entries
    headers = [decode_header(entry.header) for entry in again]
    assert [(header.attempt, header.to) for header in headers] == [(2, ("b",)), (3, ("c",))]


def test_a_node_that_is_asked_again_takes_nothing_from_the_others(crowd: Any) -> None:
    """Its attempt is for it alone; what others have of the event was ended as if it had been sent on."""
    event = crowd.sent("a", "ann", "*")
    crowd.pull("b", "a")
    store = crowd.store("a")
    store.begin()
    row = next(row for row in store.obligations(event) if row.node == "c")
    store.put_delivery(replace(row, state=DeliveryState.RETRY_PENDING, next_at_ms=crowd.wall_ms))
    store.commit()
    crowd.tick("a")
    crowd.meet()
    assert turns(crowd, "b", event) == {"bob": "queued", "ben": "queued"}
    assert turns(crowd, "c", event) == {"cat": "queued"}
    assert states(crowd, event) == {"a": "accepted", "b": "accepted", "c": "accepted"}


def test_who_comes_later_gets_what_has_not_expired_and_nobody_waits_for_it(crowd: Any, only: Any) -> None:
    event = crowd.sent("a", "ann", "*", expires_in_ms=60_000)
    crowd.meet()
    (hand,) = crowd.listen("c", "cat")
    crowd.settle("c", "cat", event, lease_id=hand.lease_id)
    crowd.live("c", "cid")
    row = next(row for row in crowd.store("c").turns_of("a", event) if row.to_agent == "cid")
    assert (row.share, row.state) == (Share.LATE, TurnState.QUEUED)
    (late,) = crowd.listen("c", "cid", "socket-cid")
    crowd.settle("c", "cid", event, lease_id=late.lease_id)
    assert crowd.acks("c", event) == ["accepted", "ok"]
    crowd.tick("c", RemoveAgent(70, "cid"))
    crowd.live("c", "cid")
    assert only(crowd.listen("c", "cid", "socket-again"), Handed) == [], "each agent once"
    crowd.advance(60_000)
    crowd.live("c", "coe")
    assert not [row for row in crowd.store("c").turns_of("a", event) if row.to_agent == "coe"]


def test_a_full_inbox_among_several_is_a_failure_of_that_agent(crowd: Any) -> None:
    for _ in range(crowd.limits.room_for(2)):
        crowd.sent("a", "ann", "bob")
    event = crowd.sent("a", "ann", "bob,ben")
    crowd.meet()
    assert turns(crowd, "b", event) == {"bob": "done", "ben": "queued"}
    assert ("inbox_full", "bob") in crowd.incidents("b")
    (hand,) = crowd.listen("b", "ben")
    crowd.settle("b", "ben", event, lease_id=hand.lease_id)
    assert crowd.acks("b", event) == ["accepted", "failed: 1 of 2: bob: inbox_full"]


def test_the_sender_may_ask_again(crowd: Any, stranger: Any) -> None:
    crowd.own("eve", "x")
    crowd.see()
    event = stranger.event(to_agent_id=None, to_agents=("bob", "ben"))
    crowd.tick("b", stranger.says(event))
    crowd.tick("b", stranger.says(event))
    assert crowd.acks("b", event.event_id) == ["accepted", "accepted"]


def test_given_up_it_is_taken_back_everywhere(crowd: Any) -> None:
    event = crowd.sent("a", "ann", "*", expires_in_ms=1_000)
    while states(crowd, event) != {"a": "processed", "b": "dead_letter", "c": "dead_letter"}:
        crowd.wake("a")
    assert crowd.delivery("a", event).state is DeliveryState.DEAD_LETTER
    crowd.pull("c", "a")
    assert turns(crowd, "c", event) == {"cat": "done"}
