"""The grammar of W3C Trace Context: what passes, what is refused, and what a later version is taken for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import InvalidEvent
from outbox.limits import TRACEPARENT_MAX
from outbox.traceparent import readable_traceparent, traceparent

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
LINE = f"00-{TRACE}-{PARENT}-01"


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        (LINE, LINE),
        (f"00-{TRACE}-{PARENT}-03", f"00-{TRACE}-{PARENT}-03"),
        (f"01-{TRACE}-{PARENT}-03", f"00-{TRACE}-{PARENT}-01"),
        (f"cc-{TRACE}-{PARENT}-00-what-comes", f"00-{TRACE}-{PARENT}-00"),
    ],
)
def test_it_passes_as_it_is_or_as_what_is_known_of_a_later_version(line: str, passed: str) -> None:
    assert traceparent(line) == readable_traceparent(line) == passed


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        LINE.upper(),
        LINE + "-00",
        LINE + "\n",
        " " + LINE,
        f"{LINE},{LINE}",
        f"ff-{TRACE}-{PARENT}-01",
        f"0-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-\u0660\u0660",
        f"01-{TRACE}-{PARENT}-01.x",
        f"01-{TRACE}-{PARENT}-01-{'x' * TRACEPARENT_MAX}",
    ],
)
def test_anything_else_is_refused_with_a_hint_and_not_read(line: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        traceparent(line)
    assert "00-" in refused.value.hint
    assert readable_traceparent(line) is None


def test_none_is_none() -> None:
    assert readable_traceparent(None) is None


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.{0,3}"))
def test_what_passes_is_of_this_version_and_passes_again(text: str) -> None:
    passed = readable_traceparent(text)
    if passed is not None:
        assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", passed)
        assert traceparent(passed) == passed
