"""``report``: the lake as SLA incidents, objectives and a page to forward."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.homes import current_home
from gateway.cli.options import as_json, at_lake, duration, moment
from gateway.cli.output import counted, note
from spark.objects import LakePath

if TYPE_CHECKING:
    from spark.objectives import Objective
    from spark.sla import Threshold
    from spark.summary import IncidentLine


@click.command()
@at_lake
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where to write it."
)
@click.option(
    "--as-of", type=moment, metavar="TIME", help="The moment at which promises are judged (default: now)."
)
@click.option(
    "--accept-sla",
    type=duration,
    metavar="DURATION",
    help="A message is on the other disk within (default 1m).",
)
@click.option(
    "--process-sla", type=duration, metavar="DURATION", help="Its turn is done within (default 5m)."
)
@click.option(
    "--slo",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Objectives to judge, as OpenSLO v1 YAML (default: 99 % within the two above).",
)
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    metavar="URL",
    help="Where Spark runs: local[N], spark://host:7077, k8s://…, sc://host (Spark Connect).",
)
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
@click.option(
    "--emit", "emits", is_flag=True, help="Tell the mesh of the incidents, each once, by the running gateway."
)
@click.option(
    "--emit-as",
    default="sla-monitor",
    show_default=True,
    metavar="AGENT",
    help="The agent of this node that tells; add it first.",
)
@click.option(
    "--follow", "follows", is_flag=True, help="Go on: tell incidents as they open, change and close."
)
@click.option(
    "--interval",
    type=duration,
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="With --follow: how often to look.",
)
@click.option(
    "--refresh",
    type=duration,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="With --follow: write the whole report anew at most so often.",
)
@as_json
@click.pass_context
def report(
    context: click.Context,
    *,
    lake: LakePath,
    out: Path,
    as_of: int | None,
    accept_sla: int | None,
    process_sla: int | None,
    slo: Path | None,
    master: str,
    conf: tuple[str, ...],
    emits: bool,
    emit_as: str,
    follows: bool,
    interval: int,
    refresh: int,
    as_json: bool,
) -> None:
    """Judge every delivery in the lake. Incidents, latencies, an HTML report; needs Spark and Java."""
    import platformdirs

    from gateway.cli.followed import follow_lake
    from gateway.clock import Clock
    from spark.job import run as run_job
    from spark.masters import parse_settings

    thresholds, objectives = _thresholds(accept_sla, process_sla), _objectives(slo)
    if follows:
        follow_lake(
            lake,
            out,
            home=current_home(context) if emits else None,
            emit_as=emit_as,
            interval_s=interval / 1000,
            as_json=as_json,
            refresh_s=refresh / 1000,
            thresholds=thresholds,
            objectives=objectives,
            master=master,
            settings=parse_settings(conf),
        )
        return
    summary = run_job(
        lake,
        out,
        as_of if as_of is not None else Clock().wall_ms(),
        progress=_show_progress,
        cache=platformdirs.user_cache_path("gateway-mesh"),
        thresholds=thresholds,
        objectives=objectives,
        master=master,
        settings=parse_settings(conf),
        keeps_classes=True,
    )
    if emits:
        _emit(context, emit_as, summary.incidents)
    _show(out, summary.open_incidents, as_json=as_json)


def _show(out: Path, opened: int, *, as_json: bool) -> None:
    if as_json:
        click.echo((out / "incidents.json").read_bytes(), nl=False)
        return
    click.echo(out / "report.html")
    note(f"{counted(opened, 'open incident')}; tables and incidents.json are in {out}")


def _thresholds(accept_ms: int | None, process_ms: int | None) -> "dict[str, Threshold]":
    """The usual promises, with what the operator said instead."""
    from msgspec.structs import replace

    from spark.sla import DEFAULTS

    return {
        kind: replace(
            promised,
            accept_ms=accept_ms or promised.accept_ms,
            process_ms=(process_ms or promised.process_ms) if promised.process_ms is not None else None,
        )
        for kind, promised in DEFAULTS.items()
    }


def _objectives(slo: Path | None) -> "tuple[Objective, ...] | None":
    from spark.slofile import read_objectives

    return read_objectives(slo) if slo is not None else None


def _emit(context: click.Context, agent: str, incidents: "tuple[IncidentLine, ...]") -> None:
    import asyncio

    from gateway.cli.emission import emit

    told = asyncio.run(emit(current_home(context), agent, incidents))
    note(f"{told.opened} incidents were told to the mesh, {told.closed} as over")


def _show_progress(what: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        note(f"[{done}/{total}] {what}")


COMMANDS = (report,)
