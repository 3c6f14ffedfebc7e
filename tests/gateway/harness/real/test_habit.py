"""Habits of agents: bad ones while faults go on, none afterwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.harness.real.habit import Deed, Habit, agent_of, deed
from outbox.ids import NodeId

FRACTIONS = st.floats(0, 1, exclude_max=True)


@given(habit=st.sampled_from(Habit), count=st.integers(1, 9), fraction=FRACTIONS, message=st.booleans())
def test_who_behaves_ends_every_turn(habit: Habit, count: int, fraction: float, message: bool):
    ends = deed(habit, count, fraction, message=message, behaved=True)
    assert ends in ({Deed.REPLY, Deed.OK, Deed.FAIL} if message else {Deed.OK})


@given(habit=st.sampled_from(Habit), fraction=FRACTIONS)
def test_no_reply_is_replied_to(habit: Habit, fraction: float):
    assert deed(habit, 2, fraction, message=False, behaved=False) not in {Deed.REPLY, Deed.FAIL}


@pytest.mark.parametrize(
    ("habit", "bad"),
    [(Habit.NACKING, Deed.NACK), (Habit.MORTAL, Deed.DIE), (Habit.SILENT, Deed.IGNORE)],
)
def test_each_bad_habit_shows(habit: Habit, bad: Deed):
    assert deed(habit, 1, 0.0, message=True, behaved=False) is bad


def test_what_was_given_back_once_is_kept():
    assert deed(Habit.NACKING, 2, 0.0, message=True, behaved=False) is Deed.OK


def test_agents_are_named_after_habit_and_node():
    assert agent_of(Habit.SLOW, NodeId("n1")) == "slow-n1"
