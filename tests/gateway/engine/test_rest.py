"""What an engine says of itself between two ticks is enough to know its time and its next wish."""

from typing import Any

import msgspec

from gateway.engine.inputs import Now
from gateway.engine.own_stream import Standing
from gateway.engine.rest import Rest
from gateway.engine.steadyclock import SteadyClock

HOUR_MS = 3_600_000


def test_its_clock_is_the_engines() -> None:
    clock = SteadyClock(0, Now(HOUR_MS, 0))
    for now in (Now(HOUR_MS + 10, 10), Now(10, 20), Now(1_000, 1_010), Now(2 * HOUR_MS, 9_000)):
        clock.read(now)
        rest = Rest(None, clock.base, Standing.PROVEN)
        for later in (now, Now(now.wall_ms + 500, now.mono_ms + 500), Now(0, now.mono_ms + 1)):
            assert rest.wall_ms(later) == clock.peek(later).wall_ms


def test_an_engine_says_when_it_wakes_and_how_its_outbox_stands(world: Any) -> None:
    engine, now = world.nodes["a"].engine, world.now()
    assert engine.rest(now).wake_ms == engine.next_wake_ms(now)
    world.sent("a", "ann", "bob")
    rest = engine.rest(world.now())
    assert rest.wake_ms is not None
    assert rest.standing in {Standing.ALONE, Standing.PROVEN}


def test_it_survives_json() -> None:
    rest = Rest(5, Now(1, 2), Standing.WAITING)
    assert msgspec.json.decode(msgspec.json.encode(rest), type=Rest) == rest
