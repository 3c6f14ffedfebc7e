"""The root command and how it ends. What is heavy is imported inside the commands that need it."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gateway.cli import (
    archives,
    blobs,
    demo,
    doctor,
    harness,
    history,
    invites,
    lake,
    mesh,
    messages,
    node,
    outbox,
    reports,
    revoking,
)
from gateway.cli.exits import Exit, exit_of, explain
from gateway.cli.output import note
from outbox.errors import MeshError


class _Interrupted(Exception):
    """Somebody has pressed Ctrl-C."""


class _Commands(click.Group):
    """Keeps an interruption from click, which writes a line of its own."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. Raises _Interrupted, and all that it raises."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.option(
    "--home",
    envvar="GATEWAY_HOME",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the node (default: $GATEWAY_HOME, else the user's data directory).",
)
@click.version_option(package_name="gateway-mesh", prog_name="gateway")
@click.pass_context
def cli(context: click.Context, *, home: Path | None) -> None:
    """Join the machines that your AI agents run on.

    \b
    First node:    gateway init NODE; gateway run; gateway invite OTHER
    Other node:    gateway join --invite CODE; gateway run
    On each:       gateway agent add NAME; gateway send TO TEXT --as NAME; gateway inbox --as NAME
    """
    context.obj = home


_PARTS = (
    node,
    invites,
    mesh,
    messages,
    blobs,
    history,
    outbox,
    lake,
    reports,
    revoking,
    archives,
    doctor,
    demo,
    harness,
)

for part in _PARTS:
    for command in part.COMMANDS:
        cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code (``gateway.cli.exits``)."""
    try:
        ended = cli.main(args=arguments, prog_name="gateway", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return Exit.USAGE if isinstance(error, click.UsageError) else Exit.FAILED
    except (click.Abort, KeyboardInterrupt, _Interrupted):
        note("gateway: interrupted")
        return Exit.INTERRUPTED
    except MeshError as error:
        explain(error)
        return exit_of(error)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has enough; say nothing more
        return Exit.OK
    return ended if isinstance(ended, int) else Exit.OK


def run() -> int:
    """The command of the shell. What has ended stays so: Ctrl-C while Python goes away changes nothing."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code
