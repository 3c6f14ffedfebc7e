"""Whose inbox is full hears of it, and of how many were refused; it closes when there is room."""

from typing import Any

import pytest

from gateway.engine.inputs import Grant


@pytest.fixture
def full(world: Any) -> Any:
    """``bob`` has no room for more of normal priority."""
    world.events = [world.sent("a", "ann", "bob") for _ in range(world.limits.room_for(2))]
    world.pull("b", "a")
    return world


def detail(world: Any) -> str | None:
    row = world.store("b").incident("inbox_full", "bob")
    return row.detail if row is not None and row.closed_at_ms is None else None


def test_the_recipients_operator_sees_how_many_were_refused(full: Any) -> None:
    assert detail(full) is None
    for _ in range(3):
        last = full.sent("a", "ann", "bob", priority=3)
    urgent = full.sent("a", "ann", "bob", priority=0)
    full.meet()
    assert full.acks("b", last) == ["refused: inbox_full"]
    assert full.acks("b", urgent) == ["accepted"], "a share is kept for what is urgent"
    assert detail(full) == f"3 refused, last {last}"
    full.restart("b")
    hands = full.listen("b", "bob")
    full.settle("b", "bob", hands[0].event_id, lease_id=hands[0].lease_id)
    assert detail(full) is not None, "the urgent one takes up the room"
    full.tick("b", Grant(1, "socket", 1))
    full.settle("b", "bob", hands[1].event_id, lease_id=hands[1].lease_id)
    assert detail(full) is None
    full.sent("a", "ann", "bob")
    another = full.sent("a", "ann", "bob")
    full.meet()
    assert detail(full) == f"1 refused, last {another}"


def test_a_full_neighbour_is_told_to_whoever_sends(world: Any) -> None:
    world.live("a", "amy")
    for _ in range(world.limits.room_for(2)):
        world.sent("a", "ann", "amy")
    refused = world.send("a", "ann", "amy")
    assert (refused.code, refused.retryable) == ("rate_limited", True)
    assert world.send("a", "ann", "amy", priority=0).duplicate is False
