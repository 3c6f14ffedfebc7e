"""RFC 3339 text in UTC with milliseconds, and milliseconds since 1970, into each other."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from outbox.errors import InvalidEvent
from outbox.limits import TIMES_REMEMBERED

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)

LATEST_MS = 253_402_300_799_999
"""The end of the year 9999: what is later has no text."""


@lru_cache(TIMES_REMEMBERED)
def rfc3339(wall_ms: int) -> str:
    """``2026-11-27T12:00:00.123Z`` for milliseconds since 1970."""
    return (_1970 + timedelta(milliseconds=wall_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(TIMES_REMEMBERED)
def parse_rfc3339(text: str) -> int:
    """Milliseconds since 1970; finer digits are cut. Raises InvalidEvent."""
    if not _RFC3339.fullmatch(text):
        raise InvalidEvent(f"{text[:40]!r} is not an RFC 3339 time with a zone")
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
        return (moment - _1970) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise InvalidEvent(f"{text[:40]!r} is not a time") from None
