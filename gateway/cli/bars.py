"""Progress bars: on a terminal, to stderr."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


def sending(file: Path) -> "ProgressBar[int]":
    """Of a file that is brought to the gateway, by bytes."""
    size = file.stat().st_size
    return click.progressbar(length=size, label="sending", file=sys.stderr, hidden=not sys.stderr.isatty())
