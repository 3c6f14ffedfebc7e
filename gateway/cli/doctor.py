"""``doctor``: what is wrong here, and what to do about it."""

import click

from gateway.cli.exits import Exit
from gateway.cli.homes import current_home
from gateway.cli.options import as_json
from gateway.cli.output import emit_json, table


@click.command()
@as_json
@click.pass_context
def doctor(context: click.Context, *, as_json: bool) -> int:
    """Check home, keys, settings, database and gateway. And audit, clock, tokens, socket, links, Java.

    Changes nothing.
    """
    from gateway.cli.checks import Level, examine

    findings = examine(current_home(context))
    if as_json:
        emit_json(findings)
    else:
        rows = [(finding.level, finding.check, finding.what, finding.do) for finding in findings]
        table(("", "check", "found", "what to do"), rows, empty="")
    return Exit.FAILED if any(finding.level is Level.FAIL for finding in findings) else Exit.OK


COMMANDS = (doctor,)
