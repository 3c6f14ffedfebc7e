"""``demo``: the whole path on one machine."""

from pathlib import Path

import click

from gateway.cli.options import as_json
from gateway.demo.limits import DURATION_S_DEFAULT, DURATION_S_MAX, DURATION_S_MIN


@click.command()
@click.option(
    "--messages",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE.jsonl",
    help="Play your own conversation: {from, to, text, at_ms, reply_to?} a line.",
)
@click.option(
    "--duration",
    type=click.FloatRange(DURATION_S_MIN, DURATION_S_MAX),
    default=DURATION_S_DEFAULT,
    show_default=True,
    metavar="SECONDS",
    help="How long the conversation takes.",
)
@click.option("--keep", is_flag=True, help="Leave the three gateways running, and say how to talk to them.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where homes, lake, report and logs go; new or empty (default: a temporary one).",
)
@click.option("--no-report", is_flag=True, help="Leave out the lake and the Spark job.")
@as_json
def demo(
    *,
    messages: Path | None,
    duration: float,
    keep: bool,
    directory: Path | None,
    no_report: bool,
    as_json: bool,
) -> int:
    """Run three gateways here, let agents talk, and judge it all. One of them is killed meanwhile.

    Every conversation, yours too, gets a burst of 120 messages around the kill and one of each kind of
    trouble. Exit code 0 means that every promise was kept, by the journals and by the Spark report.
    """
    from gateway.demo.options import Options
    from gateway.demo.run import run

    options = Options(
        messages=messages,
        duration_ms=int(duration * 1000),
        keep=keep,
        directory=directory,
        json=as_json,
        report=not no_report,
    )
    return run(options)


COMMANDS = (demo,)
