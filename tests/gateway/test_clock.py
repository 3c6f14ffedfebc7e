import subprocess
import sys
from threading import Thread

from gateway.clock import Clock
from outbox.ids import event_id


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = Clock()
    readings = [clock.mono_ms() for _ in range(1_000)]
    assert readings == sorted(readings)


def test_the_wall_clock_counts_milliseconds_since_1970() -> None:
    wall_ms = Clock().wall_ms()
    assert 1_700_000_000_000 < wall_ms < 10_000_000_000_000


def test_fractions_lie_in_the_half_open_unit_interval_on_both_sides_of_its_middle() -> None:
    clock = Clock()
    drawn = [clock.fraction() for _ in range(1_000)]
    assert 0 <= min(drawn) < 0.5 < max(drawn) < 1
    assert len(set(drawn)) > 990


def test_new_ids_are_legal_distinct_and_carry_their_time() -> None:
    clock = Clock()
    ids = [clock.event_id(1_795_000_000_000) for _ in range(100)]
    assert len(set(ids)) == 100
    assert {event_id(name)[4:16] for name in ids} == {f"{1_795_000_000_000:012x}"}
    before = clock.wall_ms()
    stamp = int(clock.event_id()[4:16], 16)
    assert before <= stamp <= clock.wall_ms()


def test_lease_ids_and_entropy_do_not_repeat() -> None:
    clock = Clock()
    assert len({clock.lease_id() for _ in range(100)}) == 100
    assert len(clock.entropy(32)) == 32
    assert clock.entropy(32) != clock.entropy(32)


def test_threads_that_draw_together_get_nothing_twice() -> None:
    clock, drawn = Clock(), list[bytes]()
    threads = [
        Thread(target=lambda: drawn.extend([clock.entropy(10) for _ in range(3_000)])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == len(set(drawn)) == 12_000


def test_a_process_that_was_forked_draws_anew() -> None:
    code = (
        "import os; from gateway.clock import Clock; clock = Clock(); clock.entropy(10); child = os.fork();"
        " child and os.waitpid(child, 0); print(clock.entropy(10).hex(), flush=True)"
    )
    drawn = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.split()
    assert len(set(drawn)) == 2


def test_all_chance_comes_from_one_place() -> None:
    """A world of the simulation puts seeded bytes in its place: else no seed gives the same world twice."""

    class Counted(Clock):
        def entropy(self, size: int) -> bytes:
            return bytes(range(size))

    clock = Counted()
    assert [clock.event_id(5), clock.lease_id(), clock.fraction()] == [
        clock.event_id(5),
        clock.lease_id(),
        clock.fraction(),
    ]
