"""``status``, ``nodes``, ``agents``, ``agent add|set|remove``: who is there."""

from typing import TYPE_CHECKING

import click

from gateway.cli.homes import ask
from gateway.cli.options import ahead, as_json, duration
from gateway.cli.output import emit_json, moment, note, table
from gateway.errors import TimedOut

if TYPE_CHECKING:
    from gateway.api.mesh import StatusAnswer
    from gateway.client import GatewayClient

_WRITTEN = {"inline": "by the gateway itself", "process": "by a process of its own"}


@click.command()
@click.option(
    "--ready-within",
    type=duration,
    metavar="DURATION",
    help="Wait until the gateway is ready, so long at most: it may be about to start.",
)
@as_json
@click.pass_context
def status(context: click.Context, *, ready_within: int | None, as_json: bool) -> None:
    """This node at a glance."""
    found = ask(context, lambda gateway: _status(gateway, ready_within))
    if as_json:
        emit_json(found)
        return
    table(("", ""), _status_rows(found), empty="")
    if found.process.revoked:
        note("the key of this node was revoked: nobody in the mesh hears it any more")
    if found.storage_full:
        note("the disk is full: nothing is accepted until there is room")


def _status_rows(found: "StatusAnswer") -> list[tuple[str, object]]:
    counts = {"deliveries": found.deliveries, "turns": found.received}
    return [
        ("node", found.node),
        ("mesh", found.mesh),
        *((("REVOKED", found.process.revoked),) if found.process.revoked else ()),
        ("ready", found.ready),
        ("since", moment(found.process.started_at_ms)),
        ("peers reach", ", ".join(found.process.endpoints) or "nothing: it dials"),
        ("agents reach", ", ".join(found.process.local)),
        ("journal written", _WRITTEN[found.process.engine_host]),
        ("events in the outbox", f"{found.head_seq} of epoch {found.epoch}, {found.process.standing}"),
        *((("waits for", ", ".join(found.process.awaited)),) if found.process.awaited else ()),
        *((("forked", ", ".join(found.process.forked)),) if found.process.forked else ()),
        *(
            (name, ", ".join(f"{state} {count}" for state, count in by.items()))
            for name, by in counts.items()
        ),
        *(("waiting", f"{row.count} for {row.node or 'an owner'}: {row.state}") for row in found.waiting),
        ("agents here", found.agents),
        *(("last active", f"{name} {moment(at_ms)}") for name, at_ms in found.active.items()),
        ("links up", ", ".join(link.node for link in found.links if link.state == "up")),
        *(
            (f"link {link.state}", f"{link.node}: {link.last_error or 'nothing was heard of it yet'}")
            for link in found.links
            if link.state != "up"
        ),
        ("open incidents", found.incidents_open),
        ("quarantined", found.quarantined),
    ]


async def _status(gateway: "GatewayClient", ready_within_ms: int | None) -> "StatusAnswer":
    if ready_within_ms is None:
        return await gateway.status()

    from gateway.fleet.waiting import comes_true

    async def is_ready() -> bool:
        return (await gateway.status()).ready

    ready = await comes_true(is_ready, ready_within_ms / 1000)
    found = await gateway.status()
    if not ready:
        raise TimedOut(
            f"{found.node} answers and is not ready after {ready_within_ms / 1000:g} s",
            hint="see why with: gateway doctor",
        )
    return found


@click.command()
@as_json
@click.pass_context
def nodes(context: click.Context, *, as_json: bool) -> None:
    """The nodes of the mesh, as this one sees them."""
    rows = ask(context, lambda gateway: gateway.nodes())
    if as_json:
        emit_json(rows)
        return
    shown = [
        (
            row.node + (" (here)" if row.here else ""),
            row.revoked or row.role + (" (reads all)" if row.reads_all and row.role != "seed" else ""),
            row.online,
            row.link,
            row.lag,
            "" if row.clock_ahead_ms is None else f"{row.clock_ahead_ms:+d} ms",
            "" if row.online else moment(row.last_seen_ms),
            row.reason or ", ".join(row.endpoints),
            row.maintenance.detail if row.maintenance is not None else "",
        )
        for row in rows
    ]
    columns = ("node", "role", "online", "link", "lag", "clock", "last seen", "endpoints", "maintenance")
    table(columns, shown, empty="no nodes")


@click.command()
@as_json
@click.pass_context
def agents(context: click.Context, *, as_json: bool) -> None:
    """The agents of the mesh."""
    rows = ask(context, lambda gateway: gateway.agents())
    if as_json:
        emit_json(rows)
        return
    shown = [
        (
            row.name,
            row.node,
            row.status,
            row.online,
            row.here,
            moment(row.last_active_ms),
            ", ".join(row.fallback),
            ", ".join(row.groups),
        )
        for row in rows
    ]
    empty = "no agents yet; add one with: gateway agent add NAME"
    columns = ("agent", "node", "status", "online", "here", "last active", "fallback", "groups")
    table(columns, shown, empty=empty)


@click.group()
def agent() -> None:
    """Agents of this node."""


_FALLBACK = click.option(
    "--fallback",
    multiple=True,
    metavar="NODE",
    help="A node that may answer for it when this one is away; repeatable, in order.",
)
_GRACE = click.option(
    "--grace", type=duration, metavar="DURATION", help="How long this node may be away before (default 5m)."
)
_GROUP = click.option(
    "--group", multiple=True, metavar="GROUP", help="A group to write to it by, as group:GROUP; repeatable."
)


@agent.command()
@click.argument("name")
@_FALLBACK
@_GRACE
@_GROUP
@click.option(
    "--fallback-of",
    metavar="NODE",
    help="It lives on NODE and names this node as its fallback: stand in for it.",
)
@as_json
@click.pass_context
def add(
    context: click.Context,
    *,
    name: str,
    fallback: tuple[str, ...],
    grace: int | None,
    group: tuple[str, ...],
    fallback_of: str | None,
    as_json: bool,
) -> None:
    """Let an agent live here, or stand in for one of another node."""
    added = ask(
        context,
        lambda gateway: gateway.add_agent(
            name, fallback=fallback, grace_ms=grace, groups=group, fallback_of=fallback_of
        ),
    )
    if as_json:
        emit_json(added)
        return
    click.echo(added.token_file)
    where = "lives here" if fallback_of is None else f"is answered for here when {fallback_of} is away"
    note(f"{added.name} {where}; its programs read the token from that file")
    _tell_unknown(added.unknown)


@agent.command("set")
@click.argument("name")
@_FALLBACK
@click.option("--no-fallback", is_flag=True, help="Nobody stands in for it.")
@_GRACE
@_GROUP
@click.option("--no-group", is_flag=True, help="It is in no group.")
@as_json
@click.pass_context
def set_(
    context: click.Context,
    *,
    name: str,
    fallback: tuple[str, ...],
    no_fallback: bool,
    grace: int | None,
    group: tuple[str, ...],
    no_group: bool,
    as_json: bool,
) -> None:
    """Change who stands in for an agent, and its groups. What is not named stays."""
    if (fallback and no_fallback) or (group and no_group):
        raise click.UsageError("name some, or none; not both")
    changed = ask(
        context,
        lambda gateway: gateway.set_agent(
            name,
            fallback=() if no_fallback else fallback or None,
            grace_ms=grace,
            groups=() if no_group else group or None,
        ),
    )
    if as_json:
        emit_json(changed)
        return
    stands_in, groups = ", ".join(changed.fallback) or "nobody", ", ".join(changed.groups) or "none"
    note(f"{changed.name}: after {changed.grace_ms / 1000:g} s {stands_in} stands in; groups: {groups}")
    _tell_unknown(changed.unknown)


def _tell_unknown(nodes: tuple[str, ...]) -> None:
    """A name that is misspelt would stand in for nobody, and nobody would notice before it has to."""
    for node in nodes:
        note(f"no node of this mesh is called {node}: it stands in once it has joined (gateway nodes)")


@agent.command()
@click.argument("name")
@click.pass_context
def remove(context: click.Context, *, name: str) -> None:
    """Take an agent away. Its unfinished turns fail, and their senders are told."""
    ask(context, lambda gateway: gateway.remove_agent(name))
    note(f"{name} does not live here any more")


@click.group()
def maintenance() -> None:
    """Say that this node will be away: others show why they wait."""


@maintenance.command("on")
@click.option(
    "--until", type=ahead, metavar="TIME", help="When it will be back: 2026-11-27T12:00:00Z, or 2h from now."
)
@click.option("--reason", default="", help="Why, in a line.")
@as_json
@click.pass_context
def maintenance_on(context: click.Context, *, until: int | None, reason: str, as_json: bool) -> None:
    """Announce it to every node.

    Said again, it stands in place of what was said before.
    """
    at = moment(until) if until is not None else None
    told = ask(context, lambda gateway: gateway.announce_maintenance(until=at, reason=reason))
    if as_json:
        emit_json(told)
    else:
        note(f"told: away {'until ' + at if at is not None else 'until: gateway maintenance off'}")


@maintenance.command("off")
@as_json
@click.pass_context
def maintenance_off(context: click.Context, *, as_json: bool) -> None:
    """Say that it is over."""
    told = ask(context, lambda gateway: gateway.announce_maintenance(over=True))
    if as_json:
        emit_json(told)
    else:
        note("told: it is over")


COMMANDS = (status, nodes, agents, agent, maintenance)
