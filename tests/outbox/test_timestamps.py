import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import InvalidEvent
from outbox.timestamps import LATEST_MS, parse_rfc3339, rfc3339

YEAR_9999_MS = 253_402_300_799_999


@given(st.integers(0, YEAR_9999_MS))
def test_milliseconds_survive_the_text(wall_ms: int) -> None:
    assert parse_rfc3339(rfc3339(wall_ms)) == wall_ms


@given(st.integers(0, YEAR_9999_MS - 1))
def test_text_order_is_time_order(wall_ms: int) -> None:
    assert rfc3339(wall_ms) < rfc3339(wall_ms + 1)


@pytest.mark.parametrize(
    ("text", "wall_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.0019Z", 1),
        ("1970-01-01T00:00:00.123456789Z", 123),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_other_ways_to_write_a_time(text: str, wall_ms: int) -> None:
    assert parse_rfc3339(text) == wall_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01 00:00:00Z",
        "1970-13-01T00:00:00Z",
        "1970-01-01T25:00:00Z",
        "0000-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z\n",
        "1970-01-01T00:00:00+99:99",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "\u0661970-01-01T00:00:00Z",
    ],
)
def test_texts_that_are_no_time(text: str) -> None:
    with pytest.raises(InvalidEvent):
        parse_rfc3339(text)


def test_the_latest_time_has_a_text() -> None:
    assert parse_rfc3339(rfc3339(LATEST_MS)) == LATEST_MS
    with pytest.raises(OverflowError):
        rfc3339(LATEST_MS + 1)
