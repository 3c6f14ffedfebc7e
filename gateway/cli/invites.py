"""``invite``, ``invites list|revoke``: letting other machines in."""

import click

from gateway.cli.homes import ask
from gateway.cli.options import as_json, duration
from gateway.cli.output import emit_json, note, table
from gateway.endpoints.limits import INVITE_TTL_S_MAX


@click.command()
@click.argument("node", required=False)
@click.option(
    "--ttl", type=duration, metavar="DURATION", help="How long it can be used (default 15m, at most 7d)."
)
@click.option("--node-key", metavar="JKT", help="Only the node with this key thumbprint may use it.")
@click.option(
    "--reads-all",
    is_flag=True,
    help="It may read what is for others: a collector, or a mirror.",
)
@as_json
@click.pass_context
def invite(
    context: click.Context,
    *,
    node: str | None,
    ttl: int | None,
    node_key: str | None,
    reads_all: bool,
    as_json: bool,
) -> None:
    """Invite one machine: prints a single-use join code. For the node NODE, if one is named."""
    ttl_s = max(1, ttl // 1000) if ttl is not None else None
    if ttl_s is not None and ttl_s > INVITE_TTL_S_MAX:
        raise click.BadParameter("an invite is good for 7d at most", param_hint="--ttl")
    made = ask(
        context,
        lambda gateway: gateway.invite(node, ttl_s=ttl_s, key_thumbprint=node_key, reads_all=reads_all),
    )
    if as_json:
        emit_json(made)
        return
    click.echo(made.join_code)
    note(f"invite {made.invite_id} is good for one machine until {made.expires_at}; keep the code secret")
    note("there: gateway join --invite -   (and paste it)")


@click.group()
def invites() -> None:
    """Invites of this node."""


@invites.command("list")
@as_json
@click.pass_context
def list_invites(context: click.Context, *, as_json: bool) -> None:
    """All invites, newest first; never their secrets."""
    rows = ask(context, lambda gateway: gateway.invites())
    if as_json:
        emit_json(rows)
        return
    shown = [
        (row.invite_id, row.status, row.node or "any", row.reads_all, row.created_at, row.expires_at)
        for row in rows
    ]
    table(("invite", "status", "node", "reads all", "created", "expires"), shown, empty="no invites")


@invites.command()
@click.argument("invite_id")
@click.pass_context
def revoke(context: click.Context, *, invite_id: str) -> None:
    """Take an invite back."""
    ask(context, lambda gateway: gateway.revoke_invite(invite_id))
    note(f"{invite_id} is revoked")


COMMANDS = (invite, invites)
