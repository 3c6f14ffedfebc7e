import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.retry import RetryPolicy, full_jitter

fractions = st.floats(0, 1, exclude_max=True)


def test_the_default_doubles_from_two_seconds_to_a_minute() -> None:
    policy = RetryPolicy()
    assert [policy.ceiling_ms(attempt) for attempt in range(1, 8)] == [
        2000,
        4000,
        8000,
        16000,
        32000,
        60000,
        60000,
    ]
    assert [policy.exhausted(attempt) for attempt in (1, 7, 8, 9)] == [False, False, True, True]


@given(st.integers(1, 10**9), fractions)
def test_a_wait_lies_below_its_ceiling(attempt: int, fraction: float) -> None:
    policy = RetryPolicy()
    assert 0 <= policy.backoff_ms(attempt, fraction) < policy.ceiling_ms(attempt) <= policy.cap_ms


@given(st.integers(1, 100), fractions, fractions)
def test_a_larger_fraction_never_waits_less(attempt: int, one: float, two: float) -> None:
    less, more = sorted((one, two))
    assert RetryPolicy().backoff_ms(attempt, less) <= RetryPolicy().backoff_ms(attempt, more)


def test_jitter_is_full() -> None:
    assert RetryPolicy().backoff_ms(1, 0.0) == 0
    assert RetryPolicy().backoff_ms(1, 0.5) == 1000


@pytest.mark.parametrize(
    "text", [b'{"first_ms": 0}', b'{"factor": 0}', b'{"attempts_max": 0}', b'{"cap_ms": 1}']
)
def test_numbers_that_make_no_policy(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=RetryPolicy)


@given(st.integers(1, 10_000), fractions)
def test_a_wait_in_seconds_is_below_its_ceiling_too(failures: int, fraction: float) -> None:
    wait_s = full_jitter(failures, fraction, first=0.1, cap=10)
    assert 0 <= wait_s <= min(10, 0.1 * 2 ** min(failures - 1, 30))


def test_ceilings_double_up_to_the_cap() -> None:
    ceilings = [full_jitter(failures, 1, first=0.1, cap=1) for failures in range(1, 7)]
    assert ceilings == [0.1, 0.2, 0.4, 0.8, 1, 1]


def test_a_node_without_room_is_asked_for_hours() -> None:
    policy = RetryPolicy().patient()
    assert policy.ceiling_ms(1) == RetryPolicy().ceiling_ms(1)
    waits_ms = sum(policy.ceiling_ms(attempt) for attempt in range(1, policy.attempts_max)) / 2
    assert 10 < waits_ms / 3_600_000 < 14
    assert RetryPolicy(cap_ms=10**9, attempts_max=10**6).patient() == RetryPolicy(
        cap_ms=10**9, attempts_max=10**6
    )
