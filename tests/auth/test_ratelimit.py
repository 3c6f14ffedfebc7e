from hypothesis import given
from hypothesis import strategies as st

from auth.ratelimit import RateLimit


def limit(keys_max: int = 10) -> RateLimit:
    return RateLimit(burst=3, refill_per_s=2, keys_max=keys_max)


def test_a_burst_passes_then_one_waits() -> None:
    bucket = limit()
    assert [bucket.take("a", 0) for _ in range(4)] == [0, 0, 0, 500]
    assert bucket.take("a", 499) > 0
    assert bucket.take("a", 500) == 0


def test_another_key_is_not_affected() -> None:
    bucket = limit()
    for _ in range(10):
        bucket.take("a", 0)
    assert bucket.take("b", 0) == 0


def test_a_bucket_holds_no_more_than_the_burst() -> None:
    bucket = limit()
    bucket.take("a", 0)
    assert [bucket.take("a", 10**9) for _ in range(4)].count(0) == 3


def test_a_clock_set_back_gives_nothing_and_takes_nothing() -> None:
    bucket = limit()
    for _ in range(3):
        bucket.take("a", 10_000)
    assert bucket.take("a", 0) > 0
    assert bucket.take("a", 500) == 0


def test_the_idlest_key_is_forgotten_first() -> None:
    bucket = limit(keys_max=2)
    for _ in range(3):
        bucket.take("old", 0)
    bucket.take("new", 1)
    assert bucket.take("old", 1) > 0
    bucket.take("third", 1)
    assert len(bucket) == 2
    assert bucket.take("old", 1) > 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 400)), max_size=60))
def test_no_key_ever_gets_more_than_burst_and_refill(calls: list[tuple[str, int]]) -> None:
    bucket, now_ms, passed = limit(), 0, {"a": 0, "b": 0, "c": 0}
    for key, step_ms in calls:
        now_ms += step_ms
        passed[key] += bucket.take(key, now_ms) == 0
        assert passed[key] <= 3 + 2 * now_ms / 1000 + 1e-9
