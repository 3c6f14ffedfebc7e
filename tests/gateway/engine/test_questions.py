"""A question is asked again after a minute, then after twice as long, until it is answered."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.limits import RECALL_AGAIN_MS, RECALL_AGAIN_MS_MAX
from gateway.engine.questions import Questions
from outbox.ids import NodeId, Seq

A, B = NodeId("a"), NodeId("b")


def test_what_was_asked_before_a_restart_stands_before_the_end_that_was_found() -> None:
    questions = Questions([A], Seq(7), 1_000)
    assert questions.old(1_000) == []
    assert questions.next_ms(1_000) == 1_000 + RECALL_AGAIN_MS
    assert questions.old(1_000 + RECALL_AGAIN_MS) == [(A, 7)]
    assert questions.next_ms(1_000 + RECALL_AGAIN_MS) is None


def test_nothing_more_is_asked_of_who_has_answered() -> None:
    questions = Questions()
    questions.asked(A, Seq(1), 0)
    questions.asked(B, Seq(2), 0)
    questions.answered(A)
    questions.answered(A)
    assert questions.old(RECALL_AGAIN_MS) == [(B, 2)]


@given(st.integers(1, 40))
def test_who_never_answers_is_asked_ever_more_rarely_but_always_again(times: int) -> None:
    questions, now_ms, gaps = Questions(), 0, []
    for seq in range(times):
        questions.asked(A, Seq(seq), now_ms)
        next_ms = questions.next_ms(now_ms)
        assert next_ms is not None
        assert questions.old(next_ms - 1) == []
        assert questions.old(next_ms) == [(A, seq)]
        gaps.append(next_ms - now_ms)
        now_ms = next_ms
    assert gaps == sorted(gaps)
    assert (gaps[0], max(gaps) <= RECALL_AGAIN_MS_MAX) == (RECALL_AGAIN_MS, True)
