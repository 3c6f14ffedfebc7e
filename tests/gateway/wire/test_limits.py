from gateway.wire import limits
from outbox.limits import BATCH_ENTRIES_MAX, BODY_BYTES_MAX, HEADER_BYTES_MAX, PAGE_BYTES_MAX


def test_a_whole_page_of_the_journal_and_the_largest_event_fit() -> None:
    assert limits.ENTRIES_MAX >= BATCH_ENTRIES_MAX
    assert limits.PAYLOAD_BYTES_MAX >= PAGE_BYTES_MAX
    assert limits.PAYLOAD_BYTES_MAX >= HEADER_BYTES_MAX + BODY_BYTES_MAX


def test_the_header_of_the_fullest_frame_fits() -> None:
    pair = len(f"[{HEADER_BYTES_MAX},{BODY_BYTES_MAX}],")
    assert limits.ENTRIES_MAX * pair + 1024 <= limits.HEADER_BYTES_MAX
