"""``gateway harness``: prove on this machine what the mesh promises."""

import click

from gateway.cli.exits import Exit
from gateway.cli.options import as_json


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
@click.option("--faults", help="Classes of faults by comma, or none (default: the seed's).")
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


COMMANDS = (harness,)
