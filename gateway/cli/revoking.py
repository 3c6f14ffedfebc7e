"""``node revoke``: putting a node out of the mesh."""

import sys

import click

from gateway.cli.exits import Exit
from gateway.cli.homes import ask
from gateway.cli.options import as_json
from gateway.cli.output import emit_json, note
from gateway.endpoints.limits import REASON_CHARS_MAX


@click.group()
def node() -> None:
    """Other nodes of the mesh."""


@node.command()
@click.argument("name", metavar="NODE")
@click.option(
    "--evict/--ban",
    "evict",
    default=True,
    help="Its name may come back with a new key and a new invite (default), or never again.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why; every node of the mesh keeps it.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal is.")
@as_json
@click.pass_context
def revoke(context: click.Context, *, name: str, evict: bool, reason: str, yes: bool, as_json: bool) -> None:
    """Put a node out of the mesh for ever.

    Nobody accepts anything more from its key. Seeds may do this.
    """
    if len(reason) > REASON_CHARS_MAX:
        raise click.BadParameter(f"at most {REASON_CHARS_MAX} characters", param_hint="--reason")
    if not (yes or _agreed(name)):
        note(f"{name} was not revoked")
        context.exit(Exit.FAILED)
    done = ask(context, lambda gateway: gateway.revoke_node(name, ban=not evict, reason=reason))
    if as_json:
        emit_json(done)
        return
    upto = f"up to {done.last_seq} of epoch {done.last_epoch}" if done.last_epoch else "not at all"
    back = "for good, with its name" if done.ban else "its name may come back with a new key"
    note(f"{done.node} is revoked by {done.by}: {back}; its outbox counts {upto}")


def _agreed(name: str) -> bool:
    """What somebody at the terminal says to it. Raises UsageError where nobody is."""
    if not sys.stdin.isatty():
        raise click.UsageError("a revocation cannot be taken back, and nobody is here to ask: say --yes")
    note(f"{name} is cut off everywhere, and what is on its way to it ends. This cannot be taken back.")
    return click.confirm(f"Revoke {name}?", err=True)


COMMANDS = (node,)
