import html

from hypothesis import given
from hypothesis import strategies as st

from spark.markup import cell, clock, duration, moment, number, share, short, table, text


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


def test_a_short_name_is_one_line_and_escaped_after_it_is_cut():
    assert short("a" * 50, 10) == "a" * 9 + "\u2026"
    assert short("<" * 50, 3) == "&lt;&lt;\u2026"
    assert short("two\nlines", 20) == "two lines"
    assert short(None, 5) == ""


def test_a_table_has_headed_columns_or_says_that_there_is_nothing():
    made = table(("name", ("plot", "plot"), "n"), ["<tr><td>x</td></tr>"], "Nothing.")
    assert (
        '<th scope="col">name</th><th scope="col" class="plot">plot</th><th scope="col" class="n">n</th>'
        in made
    )
    assert table(("name",), [], "Nothing.") == '<p class="none">Nothing.</p>'
    assert cell("of", "1") == '<td class="n" data-k="of">1</td>'
