"""What ``gateway report --follow`` says: a line for each incident that opens, changes or closes."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import platformdirs
from msgspec.structs import replace

from gateway.cli.emission import emit
from gateway.cli.output import moment, note
from gateway.clock import Clock
from gateway.home import Home
from outbox.plaintext import one_line
from spark.errors import InvalidLake
from spark.following import Told, follow
from spark.objectives import Objective
from spark.objects import LakePath, ObjectPath
from spark.sla import Threshold
from spark.summary import IncidentLine

_WIDTH = 240


class _Line(msgspec.Struct):
    change: str
    incident: IncidentLine


def follow_lake(
    lake: LakePath,
    out: Path,
    *,
    home: Home | None,
    emit_as: str,
    interval_s: float,
    as_json: bool,
    refresh_s: float,
    thresholds: Mapping[str, Threshold],
    objectives: Sequence[Objective] | None,
    master: str,
    settings: Mapping[str, str],
) -> None:
    """Follow until interrupted; with a ``home`` the mesh is told as well.

    Raises InvalidLake, and as ``spark.following.follow`` does.
    """
    if isinstance(lake, ObjectPath):
        raise InvalidLake(
            "an object store is not followed", hint="follow a lake on a disk, or report every hour"
        )
    clock = Clock()
    note(f"following {lake}; end with Ctrl-C")
    follow(
        lake,
        out,
        now_ms=clock.wall_ms,
        tell=teller(home, emit_as, clock.wall_ms, as_json=as_json),
        interval_s=interval_s,
        cache=platformdirs.user_cache_path("gateway-mesh"),
        thresholds=thresholds,
        objectives=objectives,
        refresh_s=refresh_s,
        master=master,
        settings=settings,
    )


def teller(
    home: Home | None, emit_as: str, now_ms: Callable[[], int], *, as_json: bool
) -> Callable[[list[Told]], None]:
    """Prints each change, then tells the mesh. Doing both again tells the mesh nothing new."""

    def tell(news: list[Told]) -> None:
        for change, line in news:
            sys.stdout.write(f"{_json(change, line) if as_json else _words(change, line)}\n")
        sys.stdout.flush()
        if home is not None and news:
            asyncio.run(emit(home, emit_as, [_ended(change, line, now_ms()) for change, line in news]))

    return tell


def _json(change: str, line: IncidentLine) -> str:
    return msgspec.json.encode(_Line(change, line)).decode()


def _words(change: str, line: IncidentLine) -> str:
    parties = f"{line.from_agent or '-'}@{line.from_node} → {line.to_agent or '-'}@{line.to_node or '-'}"
    what = "closed" if change == "changed" and line.closed_at_ms is not None else change
    words = f"{what:<9} {line.severity:<8} {line.name} {parties} {line.subject or line.root_id}"
    since = f" since {moment(line.opened_at_ms)}" if line.opened_at_ms is not None else ""
    detail = f": {line.detail}" if line.detail else ""
    return one_line(f"{words}{since}{detail}", _WIDTH)


def _ended(change: str, line: IncidentLine, now_ms: int) -> IncidentLine:
    """What was withdrawn is over for whoever was told of it."""
    is_over = change == "withdrawn" and line.closed_at_ms is None
    return replace(line, closed_at_ms=now_ms) if is_over else line
