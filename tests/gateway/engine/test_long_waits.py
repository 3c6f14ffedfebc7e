"""Half an hour, or days, in which nothing goes as it should, at the default settings: nothing is lost."""

from typing import Any

import pytest

from gateway.engine.effects import Handed
from gateway.engine.inputs import Extend, Grant, Prune

MINUTE_MS = 60_000


def pass_time(world: Any, minutes: int, *names: str) -> None:
    """Let time pass for these nodes, minute by minute."""
    for _ in range(minutes):
        world.advance(MINUTE_MS)
        for name in names:
            world.tick(name)


def test_a_node_that_was_away_for_half_an_hour_gets_everything_and_no_attempt_was_burnt(world: Any) -> None:
    events = [world.sent("a", "ann", "bob") for _ in range(5)]
    pass_time(world, 30, "a")
    assert {world.delivery("a", event).attempt for event in events} == {1}
    world.meet()
    assert {world.delivery("a", event).state for event in events} == {"accepted"}


def test_what_a_busy_agent_has_no_time_for_waits_and_its_sender_is_told(world: Any) -> None:
    first, second = world.sent("a", "ann", "bob"), world.sent("a", "ann", "bob")
    world.meet()
    (hand,) = world.listen("b", "bob", "s", credit=1)
    for req in range(30):
        world.tick(
            "b", Extend(req=req, agent="bob", event_id=first, lease_id=hand.lease_id, lease_ms=2 * MINUTE_MS)
        )
        pass_time(world, 1, "a", "b")
        world.meet()
    row = world.row("b", second)
    assert (row.state, row.delivery_count) == ("queued", 0)
    assert ("accepted_not_processed", second) in world.incidents("a")
    world.settle("b", "bob", first, lease_id=hand.lease_id)
    handed = [effect for effect in world.tick("b", Grant(99, "s", 1)) if isinstance(effect, Handed)]
    assert [turn.event_id for turn in handed] == [second]


@pytest.mark.parametrize("hours", [2, 48])
def test_what_was_given_up_can_be_looked_at_long_after(world: Any, hours: int) -> None:
    world.own("zoe", "b", active=False)
    world.see()
    event = world.sent("a", "ann", "zoe")
    for _ in range(hours):
        world.advance(60 * MINUTE_MS)
        world.ask("a", Prune(7, force=False))
    row = world.delivery("a", event)
    assert (row.state, row.dead_at_ms is not None) == ("dead_letter", True)
    assert ("dead_letter", event) in world.incidents("a")
