"""Options and arguments that several commands share."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click

from gateway.cli.homes import AGENT_VARIABLE
from spark.objects import LakePath, lake_path

_Command = TypeVar("_Command", bound=Callable[..., object])

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|d)", re.ASCII)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(text: str) -> int:
    """``500ms``, ``30s``, ``15m``, ``2h``, ``7d`` as milliseconds. Raises BadParameter."""
    match = _DURATION.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text[:40]!r} is no duration; write 500ms, 30s, 15m, 2h or 7d")
    return int(match[1]) * _UNIT_MS[match[2]]


def moment(text: str) -> int:
    """``2026-11-27T12:00:00Z`` as milliseconds since 1970. Raises BadParameter."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise click.BadParameter(f"{text[:40]!r} is no time with a zone, like 2026-11-27T12:00:00Z")
    return int(found.timestamp() * 1000)


def ahead(text: str) -> int:
    """A moment as ``moment`` reads it, or how long it is until then, as milliseconds since 1970.

    Raises BadParameter.
    """
    from gateway.clock import Clock

    if _DURATION.fullmatch(text):
        return Clock().wall_ms() + duration(text)
    try:
        return moment(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}, and no duration, like 2h") from None


class _Lake(click.ParamType[LakePath]):
    name = "directory"

    def convert(
        self, value: str | LakePath, param: click.Parameter | None, ctx: click.Context | None
    ) -> LakePath:
        place = lake_path(value) if isinstance(value, str) else value
        if isinstance(place, Path) and place.is_file():
            self.fail(f"{value} is a file.", param, ctx)
        return place


def at_lake(command: _Command) -> _Command:
    """``--lake DIR``: where collected events are."""
    option = click.option(
        "--lake",
        type=_Lake(),
        metavar="DIR",
        required=True,
        help="Directory of events, also one of an object store: s3://bucket/prefix.",
    )
    return option(command)


def as_agent(command: _Command) -> _Command:
    """``--as AGENT``: for whom the command acts."""
    option = click.option(
        "--as",
        "agent",
        metavar="AGENT",
        envvar=AGENT_VARIABLE,
        required=True,
        help="The agent of this node that acts (default: $GATEWAY_AGENT).",
    )
    return option(command)


def as_json(command: _Command) -> _Command:
    """``--json``: for programs."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")(command)


def as_json_lines(command: _Command) -> _Command:
    """``--json`` of a command that follows."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document a line.")(command)
