"""What an agent has still to say survives its death, and is said once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.conversation import Line
from gateway.demo.speech import Agenda, Question, Speech, key_of, number_of, speech_of

LINE = Line(number=7, sender="al", recipient="bo", text="hi", at_ms=30)


def speech(key, at_ms, lease_id=None):
    question = Question("evt_1", lease_id) if lease_id else None
    return Speech(key=key, to="bo", text="hi", at_ms=at_ms, question=question)


@given(st.integers(1, 10**6))
def test_keys_of_lines_are_read_back(number):
    assert number_of(key_of(number)) == number


@pytest.mark.parametrize("key", [None, "", "burst-3", "line-", "line-x", "-3"])
def test_other_keys_are_no_lines(key):
    assert number_of(key) is None


def test_a_line_becomes_a_speech():
    made = speech_of(LINE, Question("evt_1", "lease_1"))
    assert (made.key, made.to, made.text, made.at_ms) == ("line-7", "bo", "hi", 30)


@given(st.lists(st.integers(0, 50)))
def test_what_is_due_first_is_said_first_and_ties_in_order(times):
    agenda = Agenda()
    for number, at_ms in enumerate(times):
        agenda.add(speech(f"k{number}", at_ms))
    said = []
    while agenda.next_ms() is not None:
        said.append(agenda.begin().key)
        agenda.done()
    assert said == [f"k{number}" for number, _ in sorted(enumerate(times), key=lambda pair: pair[1])]


def test_a_second_entry_takes_the_place_of_the_first():
    agenda = Agenda()
    agenda.add(speech("k", 10))
    agenda.add(speech("k", 40, "lease_2"))
    assert agenda.next_ms() == 40
    assert agenda.begin().question == Question("evt_1", "lease_2")
    assert agenda.next_ms() is None


def test_what_was_begun_and_not_heard_is_known():
    agenda = Agenda()
    agenda.add(speech("k", 10))
    begun = agenda.begin()
    assert agenda.begun is begun
    agenda.done()
    assert agenda.begun is None


def test_a_dead_agents_turns_are_dropped_and_its_own_lines_kept():
    agenda = Agenda()
    agenda.add(speech("answer", 10, "lease_1"))
    agenda.add(speech("line-1", 20))
    agenda.forget_turns()
    assert agenda.next_ms() == 20
    agenda.add(speech("answer", 10, "lease_1"))
    assert agenda.begin().key == "answer"
