"""Percentiles by the nearest rank."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.judging.percentiles import percentiles


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_percentiles_are_values_and_leave_at_most_their_share_above(values):
    found = percentiles(values)
    assert found is not None
    for percent, value in ((50, found.p50), (95, found.p95), (99, found.p99)):
        assert value in values
        assert sum(other > value for other in values) * 100 <= (100 - percent) * len(values)
        assert sum(other < value for other in values) * 100 < percent * len(values)


def test_percentiles_of_nothing():
    assert percentiles([]) is None
