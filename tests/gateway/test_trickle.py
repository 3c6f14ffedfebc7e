from hypothesis import given
from hypothesis import strategies as st

from gateway.limits import STRANGERS_LINES, STRANGERS_WINDOW_S
from gateway.trickle import Trickle


def test_a_few_lines_of_a_kind_are_told_and_then_how_many_were_not() -> None:
    trickle = Trickle()
    told = [trickle.pour("peer.refused", 10.0) for _ in range(STRANGERS_LINES + 5)]
    assert told == [0] * STRANGERS_LINES + [None] * 5
    assert trickle.pour("Invalid HTTP request received.", 10.0) == 0, "each kind has its own"
    assert trickle.pour("peer.refused", 10.0 + STRANGERS_WINDOW_S) == 5
    assert trickle.pour("peer.refused", 10.0 + STRANGERS_WINDOW_S) == 0


def test_what_strangers_cannot_cause_is_always_told() -> None:
    trickle = Trickle()
    assert {trickle.pour("storage.full", 1.0) for _ in range(1_000)} == {0}


@given(st.lists(st.floats(0, 1e6)))
def test_every_line_is_told_or_counted_whatever_the_clock_does(times: list[float]) -> None:
    trickle = Trickle()
    told = [trickle.pour("peer.refused", at) for at in [*times, -1e9]]
    kept = [left_out for left_out in told if left_out is not None]
    assert len(kept) + sum(kept) == len(told)
