from hypothesis import given
from hypothesis import strategies as st

from outbox.rates import Meter, Meters, Rate


@given(st.integers(1, 50), st.integers(1, 50), st.lists(st.integers(0, 300), max_size=100))
def test_whoever_waits_as_long_as_told_keeps_to_the_rate(burst: int, per_s: int, pauses: list[int]) -> None:
    """In any stretch of time: the burst, and what the stretch is worth."""
    meter, now_ms, taken = Meter(Rate(burst, per_s)), 0.0, []
    for pause_ms in pauses:
        now_ms += pause_ms
        now_ms += meter.take(now_ms)
        taken.append(now_ms)
    for first, begun_ms in enumerate(taken):
        assert len(taken) - first <= burst + (taken[-1] - begun_ms) * per_s / 1000 + 1e-6


@given(st.integers(1, 50), st.lists(st.integers(0, 300), max_size=100))
def test_what_is_asked_before_agrees_with_what_is_told(burst: int, pauses: list[int]) -> None:
    meter, now_ms = Meter(Rate(burst, 10)), 0
    for pause_ms in pauses:
        now_ms += pause_ms
        has_some = meter.has_some(now_ms)
        assert (meter.take(now_ms) == 0) == has_some


def test_a_burst_comes_back_with_time() -> None:
    meter = Meter(Rate(3, 10))
    assert [meter.take(0) for _ in range(5)] == [0, 0, 0, 100, 200]
    assert [meter.take(1_000) for _ in range(4)] == [0, 0, 0, 100]


def test_each_kind_of_message_has_its_own_and_a_kind_without_a_rate_is_free() -> None:
    meters = Meters({str: Rate(1, 10), bytes: Rate(1, 10)})
    assert [meters.take(message, 0) for message in ("a", "b", b"a", b"b")] == [0, 100, 0, 100]
    assert [meters.take(1, 0) for _ in range(100)] == [0] * 100
