"""What commands print: data to stdout, everything else to stderr; strangers' text through the escaper."""

import sys
from collections.abc import Iterable, Sequence

import click
import msgspec

from outbox.plaintext import one_line, plain

_CELL = 80
_WIDE = 200
_UNBOUNDED = 10_000
_IDS = frozenset({"event", "invite"})


def emit_json(record: object) -> None:
    """One JSON document; paths are texts in it."""
    click.echo(msgspec.json.format(msgspec.json.encode(record, enc_hook=str), indent=2).decode())


def emit_json_line(record: object) -> None:
    """One JSON document on one line, at once."""
    click.echo(msgspec.json.encode(record).decode())
    sys.stdout.flush()


def note(text: str) -> None:
    """A line for people, to stderr."""
    click.echo(plain(text, layout=True), err=True)


def counted(number: int, what: str) -> str:
    """``1 blob``, ``2 blobs``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table on stdout; with no row, ``empty`` on stderr. A program's pipe gets wide lines, uncut.

    An id is copied into the next command, so it is never broken over two lines: where the terminal is too
    narrow for the table, each row stands below its id.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [[cell(value) for value in row] for row in rows]
    if not shown:
        note(empty)
        return
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, show_header=any(columns))
    for name in columns:
        made.add_column(name, overflow="fold")
    for cells in shown:
        made.add_row(*(Text(text) for text in cells))
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    unbroken = console.measure(made, options=console.options.update(width=_UNBOUNDED)).maximum
    if columns[0] in _IDS and unbroken > console.width:
        for cells in shown:
            click.echo(_below_its_id(columns, cells))
    else:
        console.print(made)


def _below_its_id(columns: Sequence[str], cells: Sequence[str]) -> str:
    named = (f"{name} {text}" for name, text in zip(columns[1:], cells[1:], strict=True))
    return "\n  ".join((cells[0], *named))


def cell(value: object) -> str:
    """One value as one line of harmless text."""
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case _:
            return one_line(str(value), _CELL)


def moment(at_ms: int | None) -> str:
    """A time for people: RFC 3339, UTC."""
    from outbox.timestamps import rfc3339

    return "-" if at_ms is None else rfc3339(at_ms)


def text_of(payload: bytes) -> str:
    """A payload for people: its text, else its JSON."""
    content = msgspec.json.decode(payload)
    text = content.get("text") if isinstance(content, dict) else content
    return text if isinstance(text, str) else bytes(payload).decode()
