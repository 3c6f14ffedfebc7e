"""The escaper: nothing hidden gets through, nothing visible changes."""

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.plaintext import one_line, plain

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"
TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x1b\x07\n\t\u202e\u2066\u200d\u2028\u00ad\ufeff")
)


def hidden(text: str, allowed: str) -> list[str]:
    return [char for char in text if category(char) in HIDDEN and char not in allowed]


@given(TEXT)
def test_nothing_hidden_is_left(text: str) -> None:
    assert hidden(plain(text), JOINERS) == []
    assert hidden(plain(text, layout=True), JOINERS + "\n\t") == []


@given(TEXT)
def test_what_is_visible_stays_and_a_second_pass_changes_nothing(text: str) -> None:
    kept = "".join(char for char in text if not hidden(char, JOINERS))
    assert plain(kept) == kept
    assert plain(plain(text)) == plain(text)


@given(TEXT, st.integers(1, 40))
def test_one_line_is_one_line_within_its_width(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert "\n" not in line
    assert hidden(line, JOINERS) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bob\u202egpj.exe", "bob\\u202egpj.exe"),
        ("a\u2028b\x9b", "a\\u2028b\\x9b"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve 日本語 👩‍💻", "naïve 日本語 👩‍💻"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert plain(text) == shown
