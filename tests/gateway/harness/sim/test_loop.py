"""Virtual time, plain asyncio on it, and processes that die."""

import asyncio

import pytest

from gateway.harness.sim.loop import ProcessDied, SimLoop, make_loop
from gateway.harness.sim.timeline import MOMENT_STEPS_MAX, Timeline, TimeStandsStill


class Bench:
    def __init__(self) -> None:
        self.timeline = Timeline()
        self.heard: list[str] = []
        self.stumbles: list[str] = []
        self.loop = self.make()

    def make(self) -> SimLoop:
        return make_loop(self.timeline, lambda what, _error: self.stumbles.append(what))

    async def clock(self, name: str, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            self.heard.append(f"{name}@{self.timeline.now_us / 1e6:g}")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_time_passes_only_where_nothing_can_run(bench: Bench) -> None:
    other = bench.make()
    bench.loop.create_task(bench.clock("a", 2))
    other.create_task(bench.clock("b", 3))
    bench.timeline.run_until(6_000_000)
    assert bench.heard == ["a@2", "b@3", "a@4", "b@6", "a@6"]
    assert bench.loop.time() == other.time() == 6


def test_timeouts_groups_and_queues_of_asyncio_work(bench: Bench) -> None:
    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        try:
            async with asyncio.timeout(5.5), asyncio.TaskGroup() as tasks:
                tasks.create_task(bench.clock("a", 2))
                tasks.create_task(queue.put(1))
                bench.heard.append(f"got {await queue.get()}")
        except TimeoutError:
            bench.heard.append(f"timeout@{asyncio.get_running_loop().time():g}")

    bench.loop.create_task(main())
    bench.timeline.run_until(10_000_000)
    assert bench.heard == ["got 1", "a@2", "a@4", "timeout@5.5"]
    assert not bench.stumbles


def test_a_process_that_has_always_something_to_do_at_once_is_found(bench: Bench) -> None:
    """Time would stand still for ever, and the world with it."""

    async def spin() -> None:
        await asyncio.sleep(3)
        while True:
            await asyncio.sleep(0)

    bench.loop.create_task(spin())
    with pytest.raises(TimeStandsStill, match=r"at 3\.000 s"):
        bench.timeline.run_until(10_000_000)
    assert MOMENT_STEPS_MAX <= bench.timeline.steps <= MOMENT_STEPS_MAX + 10


def test_many_callbacks_at_many_moments_are_no_standstill(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.harness.sim.timeline.MOMENT_STEPS_MAX", 50)
    bench.loop.create_task(bench.clock("a", 0.001))
    bench.timeline.run_until(1_000_000)
    assert len(bench.heard) in {999, 1000}


def test_a_stopped_process_catches_up_in_order(bench: Bench) -> None:
    for second in range(1, 5):
        bench.loop.call_at(second, bench.heard.append, str(second))
    bench.timeline.run_until(500_000)
    bench.loop.stop_for(2_000_000)
    bench.timeline.run_until(1_500_000)
    bench.loop.stop_for(1_000_000)
    bench.timeline.run_until(3_400_000)
    assert bench.heard == []
    bench.timeline.run_until(4_000_000)
    assert bench.heard == ["1", "2", "3", "4"]


def test_the_killed_run_no_further_and_their_ends_reach_nobody(bench: Bench) -> None:
    async def main() -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(bench.clock("a", 1))
                tasks.create_task(bench.clock("b", 1))
        finally:
            await asyncio.sleep(0)
            bench.heard.append("ended")

    bench.loop.create_task(main())
    bench.timeline.run_until(1_000_000)
    bench.loop.kill()
    assert bench.heard == ["a@1", "b@1", "ended"]
    bench.timeline.run_until(5_000_000)
    assert len(bench.heard) == 3
    assert bench.loop.is_closed()


def test_a_process_dies_where_it_was_told_to(bench: Bench) -> None:
    bench.loop.fatal = lambda place: place == "there"

    def die() -> None:
        bench.heard.append("died")
        bench.loop.kill()

    bench.loop.on_death = die

    async def main() -> None:
        bench.loop.passes("here")
        try:
            bench.loop.passes("there")
        except ProcessDied:
            bench.heard.append("unwinds")
            raise

    bench.loop.create_task(main())
    bench.timeline.run_until(1)
    assert bench.heard == ["unwinds", "died"]
    assert bench.loop.died_at == "there"


def test_a_process_dies_after_so_many_callbacks(bench: Bench) -> None:
    bench.loop.on_death = bench.loop.kill
    bench.loop.create_task(bench.clock("a", 1))
    bench.timeline.run_until(2_000_000)
    bench.loop.steps_left = 3
    bench.timeline.run_until(60_000_000)
    assert bench.loop.dead
    assert 2 <= len(bench.heard) <= 4


def test_what_nobody_catches_is_told(bench: Bench) -> None:
    def fail() -> None:
        raise ValueError("oh")

    bench.loop.call_soon(fail)
    bench.timeline.run_until(1)
    assert len(bench.stumbles) == 1
