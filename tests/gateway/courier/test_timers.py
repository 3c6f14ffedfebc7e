from hypothesis import given
from hypothesis import strategies as st

from gateway.courier.timers import Timers

KEYS = st.sampled_from([("s", name) for name in "abcdef"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(0, 50)),
        st.tuples(st.just("cancel"), KEYS, st.just(0)),
        st.tuples(st.just("pop"), KEYS, st.integers(0, 50)),
    ),
    max_size=200,
)


@given(STEPS)
def test_it_agrees_with_a_plain_dictionary(steps: list[tuple[str, tuple[str, str], int]]) -> None:
    timers, model = Timers(), dict[tuple[str, str], int]()
    for step, key, at_ms in steps:
        match step:
            case "set":
                timers.set(key, at_ms)
                model[key] = at_ms
            case "cancel":
                timers.cancel(key)
                model.pop(key, None)
            case _:
                due = list(timers.pop_due(at_ms))
                assert sorted(due) == sorted(key for key, when in model.items() if when <= at_ms)
                assert [model[key] for key in due] == sorted(model[key] for key in due)
                for key_due in due:
                    del model[key_due]
        assert timers.next_ms() == min(model.values(), default=None)
        assert len(timers) == len(model)
        assert all(timers.at_ms(key) == when for key, when in model.items())


def test_equal_deadlines_fall_due_in_the_order_they_were_set() -> None:
    timers = Timers()
    for name in "cab":
        timers.set(("s", name), 7)
    assert [name for _, name in timers.pop_due(7)] == ["c", "a", "b"]


def test_a_cancelled_key_is_due_never() -> None:
    timers = Timers()
    timers.set(("s", "a"), 1)
    timers.cancel(("s", "a"))
    assert timers.at_ms(("s", "a")) is None
    assert not list(timers.pop_due(10))


def test_deadlines_that_are_moved_or_cancelled_leave_no_growing_heap() -> None:
    timers = Timers()
    for turn in range(10_000):
        timers.set(("s", "moved"), turn + 1_000_000)
        timers.set(("s", str(turn)), turn + 1_000_000)
        timers.cancel(("s", str(turn)))
        timers.next_ms()
    assert len(timers) == 1
    assert len(timers._heap) < 100
