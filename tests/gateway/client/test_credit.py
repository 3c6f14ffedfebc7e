"""Grants of an agent: few, and never too late."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.client.credit import refill


@given(st.integers(1, 300), st.lists(st.booleans(), max_size=1_000))
def test_who_can_take_a_turn_has_one_granted(credit: int, steps: list[bool]) -> None:
    """True: a turn comes, if any may; False: one that is in hand ends."""
    granted, in_hand = 0, 0
    for comes in [False, *steps]:
        if comes and granted:
            granted, in_hand = granted - 1, in_hand + 1
        elif not comes and in_hand:
            in_hand -= 1
        more = refill(credit - in_hand, granted)
        assert more >= 0
        granted += more
        assert granted + in_hand <= credit
        assert granted or in_hand == credit


@given(st.integers(2, 1_000))
def test_one_at_a_time_a_grant_is_for_half_of_the_credit(credit: int) -> None:
    granted, grants = refill(credit, 0), 0
    for _ in range(credit):
        granted -= 1  # comes, and ends
        more = refill(credit, granted)
        granted, grants = granted + more, grants + bool(more)
    assert grants <= 2


def test_who_takes_one_at_a_time_grants_one_at_a_time() -> None:
    assert refill(1, 0) == 1
    assert refill(1, 1) == 0
    assert refill(0, 0) == 0
    assert refill(0, 3) == 0, "turns that were resumed cost no credit"
