"""W3C Trace Context: the one line by which tracing systems know to which trace an event belongs.

It is passed through, never made and never changed: this program opens no spans. Only a line of a version that
is not known here is taken for what is known of it, as the standard asks.

Source: https://www.w3.org/TR/trace-context/ sections 3.2 and 4.3.
"""

import re
from functools import lru_cache

from outbox.errors import InvalidEvent
from outbox.limits import TRACEPARENT_MAX, TRACEPARENTS_REMEMBERED

_LINE = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_HINT = "it is 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, lower case; leave it out if you have none"


@lru_cache(TRACEPARENTS_REMEMBERED)
def traceparent(text: str) -> str:
    """The line as it travels. Raises InvalidEvent unless it is a ``traceparent``.

    What a later version says beyond this one is left away, with all flags but "sampled".
    """
    found = _LINE.fullmatch(text) if len(text) <= TRACEPARENT_MAX else None
    if found is None:
        raise InvalidEvent(f"{text[:80]!r} is no traceparent", hint=_HINT)
    version, trace, parent, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None) or not (int(trace, 16) and int(parent, 16)):
        raise InvalidEvent(f"{text[:80]!r} is no traceparent", hint=_HINT)
    return text if version == "00" else f"00-{trace}-{parent}-{int(flags, 16) & 1:02x}"


def readable_traceparent(text: str | None) -> str | None:
    """The line that somebody else wrote, None if it is none: a broken trace breaks nothing else."""
    if text is None:
        return None
    try:
        return traceparent(text)
    except InvalidEvent:
        return None
