"""Who spoke last."""

from gateway.activity import Activity
from outbox.ids import AgentId
from stateroom.limits import AGENTS_ACTIVE_MAX

ANN, BOB = AgentId("ann"), AgentId("bob")


def test_the_last_word_of_each_counts() -> None:
    activity = Activity()
    assert activity.last_ms(ANN) is None
    activity.note(ANN, 5)
    activity.note(BOB, 6)
    activity.note(ANN, 7)
    assert (activity.last_ms(ANN), activity.latest()) == (7, {BOB: 6, ANN: 7})


def test_others_are_told_of_those_who_spoke_last() -> None:
    activity = Activity()
    for number in range(AGENTS_ACTIVE_MAX + 5):
        activity.note(AgentId(f"a{number}"), number)
    activity.note(AgentId("a0"), 99)
    latest = activity.latest()
    assert len(latest) == AGENTS_ACTIVE_MAX
    assert latest[AgentId("a0")] == 99
    assert AgentId("a5") not in latest
