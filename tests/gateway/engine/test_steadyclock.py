"""The engine's wall clock never goes back, loses its lead, and believes a clock that was very wrong."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.effects import Handed
from gateway.engine.inputs import ClockMeasured, Now
from gateway.engine.limits import LEAD_MS_MAX
from gateway.engine.steadyclock import SteadyClock, newest_ms
from outbox.kinds import Kind
from outbox.timestamps import parse_rfc3339

HOUR_MS = 3_600_000


def test_a_clock_that_was_set_back_is_followed_at_half_speed() -> None:
    clock = SteadyClock(0, Now(HOUR_MS, 0))
    assert clock.read(Now(HOUR_MS + 10, 10)).wall_ms == HOUR_MS + 10
    assert clock.read(Now(10, 20)).wall_ms == HOUR_MS + 15
    assert clock.peek(Now(1_000, 1_010)).wall_ms == HOUR_MS + 510
    assert clock.read(Now(2 * HOUR_MS + 100, 2 * HOUR_MS)).wall_ms == 2 * HOUR_MS + 100


def test_a_clock_that_was_very_wrong_is_believed_at_once() -> None:
    clock = SteadyClock(0, Now(3 * LEAD_MS_MAX, 0))
    assert clock.read(Now(0, 5)).wall_ms == 0
    assert SteadyClock(3 * LEAD_MS_MAX, Now(7, 0)).read(Now(8, 1)).wall_ms == 8


@given(st.lists(st.tuples(st.integers(-HOUR_MS, HOUR_MS), st.integers(0, HOUR_MS)), max_size=30))
def test_it_never_goes_back_and_never_stands(steps: list[tuple[int, int]]) -> None:
    clock, wall_ms, mono_ms = SteadyClock(0, Now(LEAD_MS_MAX, 0)), LEAD_MS_MAX, 0
    last_ms = clock.read(Now(wall_ms, mono_ms)).wall_ms
    for jump_ms, passed_ms in steps:
        wall_ms, mono_ms = wall_ms + jump_ms + passed_ms, mono_ms + passed_ms
        now_ms = clock.read(Now(wall_ms, mono_ms)).wall_ms
        assert clock.peek(Now(wall_ms, mono_ms)).wall_ms == now_ms
        if now_ms < last_ms:
            assert last_ms - wall_ms > LEAD_MS_MAX - passed_ms
        else:
            assert now_ms >= min(wall_ms, last_ms + passed_ms // 2 - 1)
        last_ms = now_ms


def test_what_is_created_later_says_so_over_a_restart(world: Any) -> None:
    world.sent("a", "ann", "bob")
    before = newest_ms(world.store("a"))
    assert before == world.wall_ms
    world.wall_ms -= HOUR_MS
    world.restart("a")
    world.sent("a", "ann", "bob")
    first, second = (parse_rfc3339(event.created_at) for event in world.said("a", Kind.MESSAGE))
    assert second >= first
    assert newest_ms(world.store("b")) == 0


def test_an_expiry_is_read_by_the_clock_that_wrote_it(world: Any, only: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=60_000)
    late = world.sent("a", "ann", "bob", expires_in_ms=60_000)
    world.wall_ms += HOUR_MS
    world.tick("b", ClockMeasured("a", -HOUR_MS, 5))
    world.pull("b", "a")
    (hand, *_) = world.listen("b", "bob", credit=1)
    assert hand.event_id == event, "b is an hour ahead, and nothing has expired"
    world.advance(59_999)
    assert world.acks("b", late) == ["accepted"]
    world.advance(1)
    world.tick("b")
    assert world.acks("b", late) == ["accepted", "failed: expired"]


def test_a_clock_behind_does_not_prolong_a_life(world: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=60_000)
    world.wall_ms -= HOUR_MS
    world.restart("b")
    world.tick("b", ClockMeasured("a", HOUR_MS, 5))
    world.pull("b", "a")
    world.wake("b")
    assert world.acks("b", event) == ["accepted", "failed: expired"]
    assert world.listen("b", "bob") == []


def test_timers_go_on_when_the_clock_was_set_back(world: Any, only: Any) -> None:
    event = world.sent("a", "ann", "bob", expires_in_ms=20 * HOUR_MS)
    world.wall_ms -= 10 * HOUR_MS
    start_ms = world.mono_ms
    while ("never_accepted", event) not in world.incidents("a"):
        world.wake("a")
    assert world.mono_ms - start_ms <= 2 * world.policy.sla_accept_ms + 10
    assert only(world.tick("a"), Handed) == []
