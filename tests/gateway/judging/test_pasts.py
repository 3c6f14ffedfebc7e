"""Which history a node had when, and what it forgot with which."""

from gateway.judging.pasts import NONE, Pasts, Way, has_ended
from outbox.ids import AgentId
from tests.gateway.judging.bygones import ORDER, again, base, gave_up, past, present
from tests.gateway.judging.stories import ASKED, LAB, VPS, mesh

BO = AgentId("bo")


def test_what_agents_saw_they_saw_of_the_history_that_was_given_up_next():
    now, first, second = present()[LAB], past(), past(order=2 * ORDER)
    pasts = Pasts((second, first))
    assert pasts.of(LAB) == (first, second)
    assert pasts.at(LAB, ORDER - 1, now) is first.lost
    assert pasts.at(LAB, ORDER + 1, now) is second.lost
    assert pasts.at(LAB, 3 * ORDER, now) is now
    assert pasts.at(VPS, 1, now) is now
    assert pasts.after(first, now) is second.lost
    assert list(pasts.since(first, now)) == [second.lost, now]


def test_a_clone_is_beside_and_takes_the_place_of_nothing():
    pasts, now = gave_up(past(way=Way.CLONE)), present()[LAB]
    assert pasts.line(LAB) == ()
    assert pasts.at(LAB, 1, now) is now
    assert not pasts.parted(LAB, 1, 2 * ORDER)
    assert gave_up().parted(LAB, 1, 2 * ORDER)
    assert not gave_up().parted(LAB, ORDER + 1, 2 * ORDER)


def test_an_end_is_forgotten_only_with_a_history_between_it_and_the_next_deal():
    (*_, turn) = again().account().sightings
    assert gave_up().lapse(turn, 2) == past()
    assert gave_up().lapse(turn, ORDER + 1) is None
    assert gave_up(past(order=2 * ORDER)).lapse(turn, 2) is None
    assert gave_up(past(base=mesh()[LAB])).lapse(turn, 2) is None, "it had the end when it was put back"
    assert NONE.lapse(turn, 2) is None


def test_who_forgot_later_cannot_say():
    pasts = Pasts((past(), past(node=VPS, order=2 * ORDER)))
    assert gave_up().can_say(VPS, past())
    assert not pasts.can_say(VPS, past())
    assert Pasts((past(), past(node=VPS, order=1))).can_say(VPS, past())


def test_ends_of_histories_that_are_given_up():
    assert gave_up().once_ended(LAB, VPS, ASKED)
    assert not gave_up(past(lost=base())).once_ended(LAB, VPS, ASKED)
    assert has_ended(mesh()[LAB], ASKED, BO)
    assert not has_ended(base(), ASKED, BO)
