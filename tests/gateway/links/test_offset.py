"""What a peer's clock shows is told when it is news, and at no other time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.inputs import ClockMeasured
from gateway.links.offset import Offset
from gateway.wire.frames import Pong
from outbox.ids import NodeId

B = NodeId("b")


def measured(offset: Offset, ahead_ms: int, trip_ms: int, at_ms: int = 0) -> ClockMeasured | None:
    """An answer of a peer whose clock is so far ahead, after a round trip of equal halves."""
    wall_ms = 1_000_000 + at_ms
    return offset.measure(Pong(at_ms, wall_ms + trip_ms // 2 + ahead_ms), at_ms + trip_ms, wall_ms + trip_ms)


def test_the_first_answer_is_news() -> None:
    offset = Offset(B)
    assert measured(offset, 5_000, 20) == ClockMeasured(B, 5_000, 10)
    assert (offset.ms, offset.told) == (5_000, ClockMeasured(B, 5_000, 10))


@pytest.mark.parametrize(
    ("ahead_ms", "trip_ms", "news"),
    [
        (5_010, 20, False),  # both may be right
        (5_022, 20, False),  # so may these: milliseconds are cut off
        (5_023, 20, True),  # the clock was set
        (4_977, 20, True),
        (5_000, 10, False),
        (5_000, 8, True),  # twice as exact
        (5_400, 800, False),  # a slow answer says little
    ],
)
def test_what_contradicts_or_is_more_exact_is_told(ahead_ms: int, trip_ms: int, news: bool) -> None:
    offset = Offset(B)
    measured(offset, 5_000, 20)
    told = measured(offset, ahead_ms, trip_ms, 10_000)
    assert (told is not None) is news
    assert offset.ms == ahead_ms
    assert offset.told == (told or ClockMeasured(B, 5_000, 10))


@given(
    st.integers(-(10**6), 10**6),
    st.floats(0, 1),
    st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30),
)
def test_two_steady_clocks_on_a_fast_line_have_no_news(
    ahead_ms: int, apart: float, trips: list[tuple[float, float, float]]
) -> None:
    """An idle gateway is not woken by each answer to a ping: what whole milliseconds cut off is no news."""
    offset, news = Offset(B), 0
    for number, (trip_ms, there, begins) in enumerate(trips):
        at_ms = 10**9 + number * 10_000 + begins  # `int` cuts off towards zero: no clock is there
        answered_ms = int(at_ms + trip_ms * there + ahead_ms + apart)
        done_ms = int(at_ms + trip_ms)
        news += offset.measure(Pong(int(at_ms), answered_ms), done_ms, done_ms) is not None
    assert news == 1


@given(
    st.integers(-(10**6), 10**6),
    st.lists(st.tuples(st.integers(0, 60_000), st.floats(0, 1)), min_size=1, max_size=30),
)
def test_of_a_steady_clock_the_last_news_is_right_within_its_bound(
    ahead_ms: int, trips: list[tuple[int, float]]
) -> None:
    offset = Offset(B)
    for number, (trip_ms, there) in enumerate(trips):
        at_ms = number * 10_000
        pong = Pong(at_ms, at_ms + int(trip_ms * there) + ahead_ms)
        offset.measure(pong, at_ms + trip_ms, at_ms + trip_ms)
    told = offset.told
    assert told is not None
    assert abs(told.offset_ms - ahead_ms) <= told.within_ms + 1  # milliseconds are whole
