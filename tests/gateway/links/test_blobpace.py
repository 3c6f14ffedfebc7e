from hypothesis import given
from hypothesis import strategies as st

from gateway.links.blobpace import BlobPace
from gateway.links.limits import (
    BLOB_ANSWER_LONG_MS,
    BLOB_ANSWER_SHORT_MS,
    BLOB_WANT_BYTES,
    BLOB_WINDOW_BYTES_MAX,
)


def test_a_fast_link_is_filled_and_a_slow_one_left_to_messages() -> None:
    pace = BlobPace()
    for _ in range(100):
        pace.answered(BLOB_ANSWER_SHORT_MS - 1)
    assert pace.window == BLOB_WINDOW_BYTES_MAX
    pace.answered(BLOB_ANSWER_SHORT_MS)
    pace.answered(BLOB_ANSWER_LONG_MS)
    assert pace.window == BLOB_WINDOW_BYTES_MAX
    for _ in range(10):
        pace.answered(BLOB_ANSWER_LONG_MS + 1)
    assert pace.window == BLOB_WANT_BYTES


@given(st.lists(st.integers(0, 1000)))
def test_the_window_stays_within_its_bounds(times: list[int]) -> None:
    pace = BlobPace()
    for took_ms in times:
        pace.answered(took_ms)
        assert BLOB_WANT_BYTES <= pace.window <= BLOB_WINDOW_BYTES_MAX
