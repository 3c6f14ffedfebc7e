"""Who comes later gets the broadcasts that are still good, but not its own and none twice."""

from copy import deepcopy
from typing import Any

import pytest

from gateway.engine.inputs import RemoveAgent
from gateway.engine.own_stream import Reason
from outbox.records import Share, TurnState


@pytest.fixture
def told(make_world: Any) -> Any:
    """``ann`` has told everybody something."""
    world = make_world("a", "b")
    world.live("a", "ann", "amy")
    world.live("b", "bob")
    world.event = world.sent("a", "ann", "*", expires_in_ms=60_000)
    world.meet()
    return world


def shares(world: Any, node: str) -> dict[str, Share]:
    return {row.to_agent: row.share for row in world.store(node).turns_of("a", world.event)}


def test_newcomers_of_every_node_get_it(told: Any) -> None:
    told.live("a", "abe")
    told.live("b", "ben")
    assert shares(told, "a") == {"amy": Share.EVERYONE, "abe": Share.LATE}
    assert shares(told, "b") == {"bob": Share.EVERYONE, "ben": Share.LATE}


def test_the_sender_does_not_get_its_own_when_it_comes_back(told: Any) -> None:
    told.tick("a", RemoveAgent(50, "ann"))
    told.live("a", "ann")
    assert shares(told, "a") == {"amy": Share.EVERYONE}


def test_what_has_expired_or_is_doubted_is_for_nobody(told: Any, stranger: Any) -> None:
    doubted = stranger.event(to_agent_id=None, source_agent_id="eve")
    told.tick("b", stranger.says(doubted))
    told.advance(60_000)
    told.live("b", "ben")
    rows = [*told.store("b").turns_of("a", told.event), *told.store("b").ledger(doubted.event_id)]
    assert {row.to_agent for row in rows} == {"bob"}


def test_what_its_sender_has_forgotten_is_not_given_again_to_who_had_it(told: Any) -> None:
    """Of two agents one was done, was removed and came back, while the other had it still (seed 8309958)."""
    told.live("b", "ben")
    told.floors["a"] = told.store("a").head()
    told.see()
    told.settle("b", "bob", told.event)
    told.store("b").begin()
    told.store("b").prune_ledger("a", told.store("a").head().epoch, told.store("a").head().seq, 9)
    told.store("b").commit()
    assert shares(told, "b") == {"ben": Share.LATE}
    told.tick("b", RemoveAgent(50, "bob"))
    told.live("b", "bob")
    assert shares(told, "b") == {"ben": Share.LATE}


@pytest.mark.parametrize("in_hand", [False, True])
def test_what_had_ended_before_the_node_forgot_it_is_not_given_to_who_was_away(
    told: Any, *, in_hand: bool
) -> None:
    """It may have had it: the turn that says so is forgotten (seed 50238)."""
    told.meet()
    backup = deepcopy(told.store("b"))
    told.settle("b", "bob", told.event)
    told.meet()
    told.come_back("b", backup, None if in_hand else Reason.RESTORE)
    if in_hand:
        assert told.listen("b", "bob")
    told.answer("b", by="a")
    told.meet()
    assert told.row("b", told.event).state is TurnState.DONE
    told.live("b", "ben")
    assert set(shares(told, "b")) == {"bob"}


def test_nor_where_the_turn_that_came_again_ended_before_its_sender_had_answered(told: Any) -> None:
    """Of two agents one was away, and the other one left in that moment (seed 40120055)."""
    backup = deepcopy(told.store("b"))
    told.settle("b", "bob", told.event)
    told.meet()
    told.come_back("b", backup, Reason.RESTORE)
    told.answer("b", by="a")
    told.leave("b", "bob")
    assert told.row("b", told.event).error == "agent_removed"
    told.meet()
    told.live("b", "ben")
    assert shares(told, "b") == {"bob": Share.EVERYONE}
