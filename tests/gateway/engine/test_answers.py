"""What agents may say about a turn, and what comes of it."""

from typing import Any

import msgspec

from gateway.engine.effects import Extended, Handed, Refused, Sent, Settled
from gateway.engine.inputs import Extend
from outbox.kinds import Outcome
from outbox.records import TurnState


def test_a_turn_ends_once(queued: Any) -> None:
    (hand,) = queued.listen("b", "bob")
    assert queued.settle("b", "bob", queued.event).code == "conflict"
    assert queued.settle("b", "bob", queued.event, lease_id=hand.lease_id).duplicate is False
    assert queued.settle("b", "bob", queued.event, lease_id=hand.lease_id).duplicate is True
    other = queued.settle("b", "bob", queued.event, lease_id=hand.lease_id, outcome=Outcome.FAILED)
    assert other.code == "conflict"
    assert queued.nack("b", "bob", queued.event, hand.lease_id).code == "conflict"
    assert queued.acks("b", queued.event) == ["accepted", "ok"]


def test_what_nobody_holds_can_be_ended_without_a_lease(queued: Any) -> None:
    assert queued.settle("b", "bob", queued.event, lease_id="made-up").code == "conflict"
    assert queued.settle("b", "bob", queued.event) == Settled(
        queued.nodes["b"].effects[-2].req, queued.event, duplicate=False
    )
    row = queued.row("b", queued.event)
    assert (row.engaged_at_ms, row.delivery_count) == (queued.wall_ms, 1)
    assert queued.listen("b", "bob") == []


def test_a_reply_ends_the_turn_with_or_without_a_lease(queued: Any) -> None:
    queued.reply("b", "bob", queued.event)
    assert queued.row("b", queued.event).state is TurnState.DONE
    assert queued.acks("b", queued.event) == ["accepted", "ok"]


def test_only_gateways_refuse(queued: Any) -> None:
    (hand,) = queued.listen("b", "bob")
    refused = queued.settle("b", "bob", queued.event, lease_id=hand.lease_id, outcome=Outcome.REFUSED)
    assert refused.code == "invalid_event"
    assert queued.row("b", queued.event).state is TurnState.LEASED


def test_the_inbox_of_another_is_none_of_ones_business(queued: Any) -> None:
    queued.live("b", "ben")
    for answer in (
        queued.settle("b", "ben", queued.event),
        queued.nack("b", "ben", queued.event, "lease"),
        queued.reply("b", "ben", queued.event),
        queued.settle("b", "bob", "evt_" + "7" * 32),
        queued.ask("b", Extend(req=5, agent="ben", event_id=queued.event, lease_id="l", lease_ms=1)),
    ):
        assert isinstance(answer, Refused)
        assert answer.code == "not_found"


def test_a_turn_given_back_comes_again_after_its_delay(queued: Any, only: Any) -> None:
    (first,) = queued.listen("b", "bob")
    assert queued.nack("b", "bob", queued.event, "other").code == "conflict"
    assert queued.nack("b", "bob", queued.event, first.lease_id, 5_000).duplicate is False
    row = queued.row("b", queued.event)
    assert (row.state, row.lease_id, row.delivery_count) == (TurnState.QUEUED, None, 1)
    assert queued.nack("b", "bob", queued.event, first.lease_id).code == "conflict"
    queued.advance(4_999)
    assert queued.tick("b") == []
    (second,) = only(queued.wake("b"), Handed)
    assert second.delivery_count == 2
    assert queued.row("b", queued.event).engaged_at_ms == queued.wall_ms - 5_000


def test_a_turn_can_be_prolonged(queued: Any, only: Any) -> None:
    (hand,) = queued.listen("b", "bob")
    extend = Extend(req=7, agent="bob", event_id=queued.event, lease_id=hand.lease_id, lease_ms=90_000)
    assert queued.ask("b", extend) == Extended(7, queued.event, 90_000)
    assert queued.ask("b", msgspec.structs.replace(extend, lease_id="other")).code == "conflict"
    queued.advance(89_999)
    assert queued.tick("b") == []
    queued.advance(1)
    assert len(only(queued.tick("b"), Handed)) == 1


def test_an_id_of_two_senders_needs_the_lease(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("a", "ann", "bob")
    open_door.pull("b", "a")
    open_door.tick("b", stranger.says(stranger.event(event_id=event)))
    for answer in (
        open_door.settle("b", "bob", event),
        open_door.settle("b", "bob", event, lease_id="made-up"),
        open_door.reply("b", "bob", event),
        open_door.nack("b", "bob", event, "made-up"),
    ):
        assert answer.code == "ambiguous_event"
        assert "lease" in answer.hint
    honest, theft = open_door.listen("b", "bob")
    assert isinstance(open_door.reply("b", "bob", event, lease_id=honest.lease_id), Sent)
    assert open_door.settle("b", "bob", event).code == "ambiguous_event"
    assert open_door.settle("b", "bob", event, lease_id=honest.lease_id).duplicate is True
    assert open_door.settle("b", "bob", event, lease_id=theft.lease_id).duplicate is False
    open_door.pull("a", "b")
    assert open_door.delivery("a", event).state == "replied"


def test_what_was_never_the_agents_makes_no_id_ambiguous(open_door: Any, stranger: Any) -> None:
    event = open_door.sent("a", "ann", "bob")
    open_door.tick("b", stranger.says(stranger.event(event_id=event, source_agent_id="nobody")))
    assert open_door.settle("b", "bob", event).code == "conflict", "held: nobody may answer it yet"
    open_door.pull("b", "a")
    assert open_door.settle("b", "bob", event).duplicate is False
    assert [row.state for row in open_door.store("b").ledger(event)] == [TurnState.HELD, TurnState.DONE]
