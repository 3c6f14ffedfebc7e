from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from outbox.recent import Recent


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9))), st.integers(2, 20))
def test_what_is_remembered_is_what_was_kept_last(world: Any, writes: Any, kept_max: int) -> None:
    recent: Recent[int, Any] = Recent(kept_max)
    written = {}
    for number, attempt in writes:
        written[number] = world.delivery(number, attempt=attempt + 1)
        recent.keep(number, written[number])
        assert recent.get(number) == written[number]
        forgotten = recent.age()
        assert all(recent.get(gone) is None or recent.get(gone) == written[gone] for gone in forgotten)
    found = {number: recent.get(number) for number in range(31)}
    assert all(row in {None, written.get(number)} for number, row in found.items())
    assert sum(row is not None for row in found.values()) <= kept_max


def test_the_last_half_is_never_forgotten() -> None:
    recent: Recent[int, str] = Recent(10)
    for number in range(100):
        recent.keep(number, str(number))
        recent.age()
        assert all(recent.get(before) for before in range(max(0, number - 4), number + 1))
        assert recent.get(number - 10) is None


def test_what_is_asked_for_is_not_forgotten() -> None:
    recent: Recent[int, str] = Recent(10)
    for number in range(100):
        recent.keep(number, str(number))
        assert recent.get(0) == "0"
        assert 0 not in recent.age()


def test_what_is_forgotten_is_said() -> None:
    recent: Recent[int, str] = Recent(10)
    for first in range(0, 90, 3):
        recent.keep_all({number: str(number) for number in range(first, first + 3)})
        forgotten = recent.age()
        assert all(recent.get(number) is None for number in forgotten)
        assert all(forgotten[number] == str(number) for number in forgotten)
        assert recent.get(first - 15) is None


def test_what_is_heavy_is_forgotten_sooner() -> None:
    recent: Recent[int, bytes] = Recent(100, bytes_max=10_000)
    for number in range(50):
        recent.keep(number, bytes(1_000))
        recent.bytes += 1_000
        recent.age()
        assert recent.get(number) is not None
    assert sum(recent.get(number) is not None for number in range(50)) <= 10


def test_what_is_uncertain_is_forgotten() -> None:
    recent: Recent[int, str] = Recent(4)
    for number in range(3):
        recent.keep(number, str(number))
        recent.age()
    recent.clear()
    assert [recent.get(number) for number in range(3)] == [None] * 3
