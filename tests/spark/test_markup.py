import html

from hypothesis import given
from hypothesis import strategies as st

from spark.markup import clock, duration, moment, number, share, text


@given(st.text())
def test_no_text_opens_a_tag_a_quote_or_a_direction(words):
    escaped = text(words)
    assert not set(escaped) & set("<>\"'\u202e\u2066\x1b\x00")
    if words.isprintable():
        assert html.unescape(escaped) == words


def test_durations_are_said_in_the_largest_unit_that_fits():
    said = {
        None: "\u2013",
        0: "0 ms",
        999: "999 ms",
        1000: "1 s",
        1234: "1.23 s",
        90_000: "1.5 min",
        -2000: "-2 s",
    }
    assert {ms: duration(ms) for ms in said} == said
    assert (duration(7_200_000), duration(3 * 86_400_000)) == ("2 h", "3 d")


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_share_is_all_only_when_it_is_all(part, rest):
    assert share(part, part + rest).startswith("100 ") == (rest == 0 and part > 0)


def test_numbers_and_times():
    assert number(1234567) == "1\u202f234\u202f567"
    assert (moment(None), moment(0)) == ("\u2013", "1970-01-01 00:00:00 UTC")
    assert [clock(0, width) for width in (1000, 60_000, 86_400_000)] == [
        "00:00:00",
        "01-01 00:00",
        "1970-01-01",
    ]
