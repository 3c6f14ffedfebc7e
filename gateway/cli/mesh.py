"""``status``, ``nodes``, ``agents``, ``agent add|remove``: who is there."""

import click

from gateway.cli.homes import ask
from gateway.cli.options import as_json
from gateway.cli.output import emit_json, moment, note, table


@click.command()
@as_json
@click.pass_context
def status(context: click.Context, *, as_json: bool) -> None:
    """This node at a glance."""
    found = ask(context, lambda gateway: gateway.status())
    if as_json:
        emit_json(found)
        return
    counts = {"deliveries": found.deliveries, "turns": found.received}
    rows = [
        ("node", found.node),
        ("mesh", found.mesh),
        ("ready", found.ready),
        ("since", moment(found.process.started_at_ms)),
        ("endpoints", ", ".join(found.process.endpoints)),
        ("events in the outbox", found.head_seq),
        *(
            (name, ", ".join(f"{state} {count}" for state, count in by.items()))
            for name, by in counts.items()
        ),
        ("agents here", found.agents),
        ("links", ", ".join(f"{link.node} {link.state}" for link in found.links)),
        ("open incidents", found.incidents_open),
        ("quarantined", found.quarantined),
    ]
    table(("", ""), rows, empty="")
    if found.storage_full:
        note("the disk is full: nothing is accepted until there is room")


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
            row.role,
            row.online,
            row.link,
            row.lag,
            moment(row.last_seen_ms),
            ", ".join(row.endpoints),
        )
        for row in rows
    ]
    table(("node", "role", "online", "link", "lag", "last seen", "endpoints"), shown, empty="no nodes")


@click.command()
@as_json
@click.pass_context
def agents(context: click.Context, *, as_json: bool) -> None:
    """The agents of the mesh."""
    rows = ask(context, lambda gateway: gateway.agents())
    if as_json:
        emit_json(rows)
        return
    shown = [(row.name, row.node, row.status, row.online, row.here) for row in rows]
    empty = "no agents yet; add one with: gateway agent add NAME"
    table(("agent", "node", "status", "online", "here"), shown, empty=empty)


@click.group()
def agent() -> None:
    """Agents of this node."""


@agent.command()
@click.argument("name")
@as_json
@click.pass_context
def add(context: click.Context, *, name: str, as_json: bool) -> None:
    """Let an agent live here."""
    added = ask(context, lambda gateway: gateway.add_agent(name))
    if as_json:
        emit_json(added)
        return
    click.echo(added.token_file)
    note(f"{added.name} lives here; its programs read the token from that file")


@agent.command()
@click.argument("name")
@click.pass_context
def remove(context: click.Context, *, name: str) -> None:
    """Take an agent away; its unfinished turns fail, and their senders are told."""
    ask(context, lambda gateway: gateway.remove_agent(name))
    note(f"{name} does not live here any more")


COMMANDS = (status, nodes, agents, agent)
