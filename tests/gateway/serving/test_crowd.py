from hypothesis import given
from hypothesis import strategies as st

from gateway.serving.crowd import Crowd


def nobody(_connection: int) -> bool:
    return False


def test_one_more_lets_go_of_the_one_that_has_waited_longest() -> None:
    crowd = Crowd[int](3)
    assert [crowd.come(number, nobody) for number in range(5)] == [None, None, None, 0, 1]
    crowd.leave(3)
    assert crowd.come(5, nobody) is None


def test_who_is_being_served_stays_and_the_newcomer_goes_when_all_are() -> None:
    crowd = Crowd[int](2)
    crowd.come(0, nobody)
    crowd.come(1, nobody)
    assert crowd.come(2, lambda number: number == 0) == 1
    assert crowd.come(3, lambda number: number != 3) == 3
    assert len(crowd) == 2


@given(st.integers(1, 5), st.lists(st.tuples(st.booleans(), st.integers(0, 20))))
def test_there_are_never_more_than_may_be(most: int, steps: list[tuple[bool, int]]) -> None:
    crowd = Crowd[int](most)
    for comes, number in steps:
        if comes:
            crowd.come(number, nobody)
        else:
            crowd.leave(number)
        assert len(crowd) <= most
