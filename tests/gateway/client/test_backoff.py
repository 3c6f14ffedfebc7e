"""The wait before the next try."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.client.backoff import backoff_s


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_the_wait_is_below_its_ceiling(failures: int, fraction: float) -> None:
    wait = backoff_s(failures, fraction, first_s=0.1, cap_s=10)
    assert 0 <= wait <= min(10, 0.1 * 2 ** min(failures - 1, 30))


def test_ceilings_double_up_to_the_cap() -> None:
    ceilings = [backoff_s(failures, 1, first_s=0.1, cap_s=1) for failures in range(1, 7)]
    assert ceilings == [0.1, 0.2, 0.4, 0.8, 1, 1]
