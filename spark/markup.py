"""Text from strangers into HTML, numbers into words, and both into tables."""

import html
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from outbox.plaintext import one_line, plain
from outbox.timestamps import rfc3339

NOTHING = "\u2013"
"""A dash, where there is no value."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def text(words: str | None) -> str:
    """Escaped for element content and quoted attributes; unseen characters become their code points."""
    return html.escape(plain(words or ""), quote=True)


def short(words: str | None, width: int) -> str:
    """``text`` of at most so many characters, on one line."""
    return html.escape(one_line(words or "", width), quote=True)


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


def cell(what: str, value: str) -> str:
    """A number; on a phone it stands below its name instead of in a column."""
    return f'<td class="n" data-k="{what}">{value}</td>'


def table(columns: Sequence[str | tuple[str, str]], rows: Sequence[str], nothing: str) -> str:
    """A table of finished rows. A column is a title (of numbers, but the first), or a title and a class."""
    if not rows:
        return f'<p class="none">{nothing}</p>'
    heads = []
    for place, column in enumerate(columns):
        title, style = column if isinstance(column, tuple) else (column, "" if place == 0 else "n")
        kind = f' class="{style}"' if style else ""
        heads.append(f'<th scope="col"{kind}>{title}</th>')
    head = "".join(heads)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )
