"""``gateway harness``: prove on this machine what the mesh promises."""

from pathlib import Path
from typing import Literal

import click

from gateway.cli.exits import Exit
from gateway.cli.options import as_json
from gateway.harness.real.faultclass import FaultClass
from gateway.harness.real.limits import (
    DURATION_S_MAX,
    DURATION_S_MIN,
    NODES_MAX,
    NODES_MIN,
    RATE_MAX,
    RATE_MIN,
)
from gateway.harness.real.net import Net


@click.group()
def harness() -> None:
    """Try the mesh under faults before trusting it."""


@harness.command()
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, help="How many worlds.")
@click.option("--from", "first", type=click.IntRange(0), default=0, show_default=True, help="First seed.")
@click.option("--nodes", type=click.IntRange(2, 20), help="Nodes of each world (default: the seed's).")
@click.option(
    "--minutes", type=click.IntRange(1, 100_000), help="Minutes under faults (default: the seed's)."
)
@click.option("--messages", type=click.IntRange(0, 100_000), help="Messages sent (default: the seed's).")
@click.option(
    "--faults", help="Classes of faults by comma, or none; +CLASS,… beside the seed's (default: the seed's)."
)
@click.option("--shrink", is_flag=True, help="Make the first failing world as small as it goes.")
@click.option("--stop", is_flag=True, help="Stop at the first failing world.")
@click.option("--trace", is_flag=True, help="Print every event of every world.")
@as_json
def sim(
    *,
    seeds: int,
    first: int,
    nodes: int | None,
    minutes: int | None,
    messages: int | None,
    faults: str | None,
    shrink: bool,
    stop: bool,
    trace: bool,
    as_json: bool,
) -> int:
    """Simulate whole meshes, each made from one number.

    The same seed gives the same trace. Exits with 1 when a promise was broken in any of them.
    """
    from gateway.harness.sim.main import Wish, run

    wish = Wish(
        seeds=seeds,
        first=first,
        nodes=nodes,
        minutes=minutes,
        messages=messages,
        faults=faults,
        shrink=shrink,
        stop=stop,
        trace=trace,
        as_json=as_json,
    )
    return Exit.OK if run(wish, click.echo) else Exit.FAILED


@harness.command()
@click.option(
    "--nodes", type=click.IntRange(NODES_MIN, NODES_MAX), default=3, show_default=True, help="Gateways."
)
@click.option(
    "--duration",
    type=click.IntRange(DURATION_S_MIN, DURATION_S_MAX),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long faults go on; afterwards everything must come to rest.",
)
@click.option(
    "--faults",
    default="all",
    show_default=True,
    metavar="all|none|LIST",
    help=f"Classes by comma: {', '.join(FaultClass)}.",
)
@click.option(
    "--rate",
    type=click.FloatRange(RATE_MIN, RATE_MAX),
    default=20,
    show_default=True,
    metavar="PER_SECOND",
    help="Messages a second of the whole mesh; bursts come on top.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Makes the schedule.")
@click.option(
    "--net",
    type=click.Choice([net.value for net in Net]),
    default="loopback",
    show_default=True,
    help="Ways between the gateways: cables on loopback, or network namespaces (Linux, root).",
)
@click.option(
    "--engine-host",
    type=click.Choice(["inline", "process"]),
    default="inline",
    show_default=True,
    help="Where the gateways write their journals.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where homes, logs and reports go; new or empty (default: a temporary one).",
)
@click.option(
    "--report/--no-report",
    default=False,
    help="Collect the outboxes and hold the Spark report against the journals (half a minute more).",
)
@click.option("--keep", is_flag=True, help="Keep homes and logs even if nothing broke.")
@as_json
def run(
    *,
    nodes: int,
    duration: int,
    faults: str,
    rate: float,
    seed: int,
    net: str,
    engine_host: Literal["inline", "process"],
    directory: Path | None,
    report: bool,
    keep: bool,
    as_json: bool,
) -> int:
    """Run real gateways under real faults, and judge them. By what is left on their disks.

    The same seed plans the same faults. Exits with 1 when a promise was broken, and keeps homes and logs.
    Classes that this machine cannot inject are named with the reason.
    """
    from gateway.harness.real.faultclass import chosen
    from gateway.harness.real.options import Options
    from gateway.harness.real.run import run as run_harness

    options = Options(
        nodes=nodes,
        duration_s=duration,
        faults=chosen(faults),
        rate=rate,
        seed=seed,
        net=Net(net),
        engine_host=engine_host,
        directory=directory,
        report=report,
        keep=keep,
        json=as_json,
    )
    return run_harness(options)


COMMANDS = (harness,)
