"""Text from strangers into HTML, and numbers into words."""

import html
import re
from datetime import UTC, datetime, timedelta

from outbox.timestamps import rfc3339

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Control characters, and those that turn the direction of the text around them."""

NOTHING = "\u2013"
"""A dash, where there is no value."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def text(words: str | None) -> str:
    """Escaped for element content and quoted attributes; unseen characters become their code points."""
    visible = _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", words or "")
    return html.escape(visible, quote=True)


def duration(ms: int | None) -> str:
    """``850 ms``, ``1.2 s``, ``3.5 min``; a dash when nothing was measured."""
    if ms is None:
        return NOTHING
    for size, unit in _UNITS:
        if abs(ms) >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms} ms"


def number(value: int) -> str:
    """``12 345``, with spaces that do not break."""
    return f"{value:,}".replace(",", "\u202f")


def share(part: int, whole: int) -> str:
    """A percentage that never rounds up to 100; a dash of nothing."""
    if whole == 0:
        return NOTHING
    percent = 100 * part / whole
    return f"{min(percent, 99.99) if part < whole else percent:.4g} %"


def moment(ms: int | None) -> str:
    """``2026-11-27 12:00:00 UTC``."""
    return NOTHING if ms is None else rfc3339(ms)[:19].replace("T", " ") + " UTC"


def clock(ms: int, width_ms: int) -> str:
    """A time as a label under an axis whose slices are this wide: as short as can be told apart."""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    if width_ms >= 86_400_000:
        return when.strftime("%Y-%m-%d")
    return when.strftime("%m-%d %H:%M" if width_ms >= 60_000 else "%H:%M:%S")
