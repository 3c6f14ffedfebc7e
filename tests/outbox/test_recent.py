from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from outbox.limits import RECENT_BODY_BYTES_MAX
from outbox.recent import RecentRows


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9))), st.integers(2, 20))
def test_what_is_remembered_is_what_was_written_last(world: Any, writes: Any, rows_max: int) -> None:
    recent, written = RecentRows(rows_max), {}
    for number, attempt in writes:
        written[number] = world.delivery(number, attempt=attempt + 1)
        recent.keep((number,), written[number])
        assert recent.get((number,)) == written[number]
    for number in range(31):
        assert recent.get((number,)) in {None, written.get(number)}
    assert sum(recent.get((number,)) is not None for number in range(31)) <= rows_max


def test_the_last_half_is_never_forgotten(world: Any) -> None:
    recent = RecentRows(10)
    for number in range(100):
        recent.keep((number,), world.delivery(number))
        assert all(recent.get((before,)) for before in range(max(0, number - 4), number + 1))
        assert recent.get((number - 10,)) is None


def test_several_are_kept_like_one(world: Any) -> None:
    recent = RecentRows(10)
    for first in range(0, 90, 3):
        recent.keep_all({(number,): world.delivery(number) for number in range(first, first + 3)})
        assert all(recent.get((number,)) for number in range(first, first + 3))
        assert recent.get((first - 10,)) is None


def test_what_is_large_or_uncertain_is_forgotten(world: Any) -> None:
    recent = RecentRows(10)
    small = world.received(1)
    recent.keep((1,), small)
    recent.keep((2,), small)
    recent.keep((1,), world.received(1, body=bytes(RECENT_BODY_BYTES_MAX + 1)))
    assert (recent.get((1,)), recent.get((2,))) == (None, small)
    recent.clear()
    assert recent.get((2,)) is None
