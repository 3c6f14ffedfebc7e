import re

import pytest
from msgspec.structs import replace

from spark.objectives import Measure, Objective
from spark.scorecard import promise, scorecard
from tests.spark.test_report import standing


def plain(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def test_says_target_achieved_and_what_is_left_and_puts_the_missed_ones_first():
    page = scorecard(
        (standing(judged=1000, kept=995, title="Good"), standing(judged=1000, kept=900, title="Bad"))
    )
    words = plain(page)
    assert words.index("missed Bad") < words.index("met Good")
    assert "99 % 99.5 % 5 1 000" in words
    assert "50 %" in words
    assert "overdrawn 10\u00d7" in words
    assert "over 28 d" in words.replace("\u00a0", " ")


def test_a_fast_burn_stands_out_and_no_data_is_no_verdict():
    assert '<b class="bad-ink">20\u00d7</b>' in scorecard((standing(judged=1000, kept=999),))
    words = plain(scorecard((standing(judged=0, kept=0),)))
    assert "no data" in words
    assert "met" not in words.replace("message", "")
    assert plain(scorecard(())) == "No objectives."
    assert words.endswith("Burn is how fast it goes: 1\u00d7 uses it up exactly at the end of the window.")


@pytest.mark.parametrize(
    ("measure", "limit_ms", "selected", "words"),
    [
        (Measure.ACCEPTED, 60_000, (), "every message accepted within 1 min"),
        (Measure.ACCEPTED, None, (("kind", "reply"),), "reply accepted at all"),
        (Measure.PROCESSED, 5000, (("fromAgent", "a"), ("toAgent", "b")),
         "every message from a to b processed within 5 s of acceptance"),
        (Measure.ANSWERED, 5000, (("kind", "message"), ("agent", "b")), "message to b answered within 5 s"),
        (Measure.REPLIED, None, (("capability", "x/1"), ("type", "note")),
         "every message of type note for x/1 replied to"),
        (Measure.PROCESSED, None, (("fromNode", "n"), ("toNode", "m")),
         "every message from node n to node m processed without failure"),
    ],
)  # fmt: skip
def test_a_promise_reads_as_a_sentence(measure, limit_ms, selected, words):
    objective = Objective(
        name="o", title="", measure=measure, selected=selected, limit_ms=limit_ms, target=0.9, window_ms=1
    )
    assert promise(objective) == words


def test_a_title_is_text():
    shown = standing()
    hostile = replace(shown, objective=replace(shown.objective, title="<b onload=x>"))
    assert "&lt;b onload=x&gt;" in scorecard((hostile,))
