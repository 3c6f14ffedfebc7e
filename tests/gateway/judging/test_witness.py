"""What agents saw is kept in order, and two answers to one send are not mixed up."""

from gateway.judging.witness import Witness
from tests.gateway.judging.stories import ANSWER, ASKED, UNANSWERED, promise, saw


def test_everything_is_numbered_in_the_order_in_which_it_was_seen():
    seen = Witness()
    saw(seen, ASKED)
    seen.settled("bo", ASKED)
    saw(seen, UNANSWERED, agent="hermit")
    account = seen.account()
    assert [turn.order for turn in account.sightings] == [1, 3]
    assert [end.order for end in account.settlements] == [2]
    assert (seen.turns_of("bo"), seen.turns_of("hermit")) == (1, 1)


def test_a_repeated_answer_under_one_key_is_one_promise():
    seen = Witness()
    seen.heard(promise(ASKED, "line-1"))
    seen.heard(promise(ASKED, "line-1", repeated=True))
    assert [found.repeated for found in seen.account().promises] == [True]
    assert seen.account().promised("line-1") == ASKED
    assert seen.account().promised("line-2") is None


def test_two_events_under_one_key_are_two_promises():
    seen = Witness()
    seen.heard(promise(ASKED, "line-1"))
    seen.heard(promise(ANSWER, "line-1"))
    assert {found.event_id for found in seen.account().promises} == {ASKED, ANSWER}
