"""A burst, then a steady rate; who waits as long as it was told has its token."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine import pace as pace_module
from gateway.engine.pace import Pace, PaceLimits

LIMITS = PaceLimits(burst=3, per_minute=6)


def test_a_burst_and_then_one_at_a_time() -> None:
    pace = Pace(LIMITS)
    for _ in range(3):
        assert pace.wait_ms(("a", "b"), 0) == 0
        pace.spend(("a", "b"), 0)
    assert pace.wait_ms(("a",), 0) == 10_000
    assert pace.wait_ms(("a",), 4_000) == 6_000
    assert pace.wait_ms(("c",), 0) == 0
    assert pace.wait_ms(("c", "a"), 10_000) == 0


@given(st.lists(st.integers(0, 30_000), max_size=40))
def test_the_rate_holds_and_the_wait_is_true(gaps: list[int]) -> None:
    pace, now_ms, taken = Pace(LIMITS), 0, 0
    for gap_ms in gaps:
        now_ms += gap_ms
        wait_ms = pace.wait_ms(("k",), now_ms)
        assert pace.wait_ms(("k",), now_ms + wait_ms) <= 1
        if not wait_ms:
            pace.spend(("k",), now_ms)
            taken += 1
    assert taken <= LIMITS.burst + now_ms / LIMITS.refill_ms + 1


def test_the_quietest_are_forgotten(monkeypatch: object) -> None:
    monkeypatch.setattr(pace_module, "PACES_MAX", 2)  # type: ignore[attr-defined]
    pace = Pace(PaceLimits(burst=1, per_minute=1))
    for key in "abc":
        pace.spend((key,), 0)
    assert [pace.wait_ms((key,), 0) > 0 for key in "abc"] == [False, True, True]
