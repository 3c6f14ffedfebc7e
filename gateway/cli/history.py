"""``trace``, ``dead list|show|redrive|prune``, ``incidents [close]``: what happened."""

from typing import TYPE_CHECKING

import click

from gateway.cli.homes import ask
from gateway.cli.options import as_json, duration
from gateway.cli.output import cell, counted, emit_json, moment, note, table

if TYPE_CHECKING:
    from gateway.api.trace import EventTrace, Step


@click.command()
@click.argument("event")
@as_json
@click.pass_context
def trace(context: click.Context, *, event: str, as_json: bool) -> None:
    """Where is EVENT? Every step, with times and positions. A seed knows what went through it, too."""
    found = ask(context, lambda gateway: gateway.trace(event))
    if as_json:
        emit_json(found)
        return
    told_by = f"{found.told_by}, which carries it" if found.carried else found.told_by
    note(
        f"{found.kind} {found.event_id} from {found.from_agent or 'the gateway'}@{found.from_node}"
        f" to {_recipients(found)}: {found.state}  (told by {told_by})"
    )
    for receipt in found.receipts:
        said = " ".join(filter(None, (receipt.state, receipt.outcome, receipt.error)))
        note(f"at {receipt.node or 'no node'}: {cell(said)}, attempt {receipt.attempt}")
    labels = {"type": found.type, "schema": found.schema, "traceparent": found.traceparent}
    for name, value in labels.items():
        if value is not None:
            note(f"{name} {cell(value)}")
    for step in found.steps:
        if step.eta_at_ms is not None or step.plan_summary is not None:
            plan = cell(step.plan_summary) if step.plan_summary is not None else "done"
            note(f"{step.node} expects at {moment(step.eta_at_ms)}: {plan}")
    columns = ("step", "node", "time", "clock of", "position", "detail")
    table(columns, [_step(step) for step in found.steps], empty="no steps")


def _recipients(found: "EventTrace") -> str:
    """Whom it is for; where it went is told once for one agent, and by the receipts for several."""
    if found.to_agent is not None:
        return f"{found.to_agent}@{found.to_node or '-'}"
    return ",".join(found.to_agents) or "everybody"


def _step(step: "Step") -> tuple[object, ...]:
    position = f"{step.epoch}/{step.seq}" if step.seq is not None else None
    details = {
        "attempt": step.attempt,
        "deliveries": step.deliveries,
        "outcome": step.outcome,
        "error": step.error,
        "by": step.event_id,
        "via": step.via,
    }
    detail = " ".join(f"{name}={value}" for name, value in details.items() if value is not None)
    return step.stage, step.node, moment(step.at_ms), step.clock, position, detail


@click.group()
def dead() -> None:
    """Dead letters."""


@dead.command("list")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@click.option("--before", metavar="EVENT", help="Older ones than this one of the list.")
@click.option("--all", "everything", is_flag=True, help="Those too that were redriven or pruned.")
@as_json
@click.pass_context
def list_dead(
    context: click.Context, *, limit: int, before: str | None, everything: bool, as_json: bool
) -> None:
    """What this node gave up, newest first."""
    rows = ask(context, lambda gateway: gateway.dead(limit=limit, before=before, everything=everything))
    if as_json:
        emit_json(rows)
        return
    shown = [
        (
            row.event_id,
            row.sender,
            row.recipient,
            row.node,
            row.attempt,
            row.error,
            moment(row.dead_at_ms),
        )
        for row in rows
    ]
    columns = ("event", "from", "to", "node", "attempts", "why", "given up")
    table(columns, shown, empty="no dead letters")


@dead.command("show")
@click.argument("event")
@as_json
@click.pass_context
def show_dead(context: click.Context, *, event: str, as_json: bool) -> None:
    """What became of one: every step of it, as trace shows it."""
    context.invoke(trace, event=event, as_json=as_json)


@dead.command()
@click.argument("event")
@click.option("--expires", type=duration, metavar="DURATION", help="Give up after so long (default 7d).")
@as_json
@click.pass_context
def redrive(context: click.Context, *, event: str, expires: int | None, as_json: bool) -> None:
    """Send EVENT again, as a new event; asked twice, it is sent once. Prints the new event's id."""
    sent = ask(context, lambda gateway: gateway.redrive(event, expires_in_ms=expires))
    if as_json:
        emit_json(sent)
        return
    click.echo(sent.event_id)
    note(f"to {sent.to.agent} at {sent.to.node}{' (redriven before)' if sent.duplicate else ''}")


@dead.command()
@click.argument("events", nargs=-1)
@click.option("--older-than", type=duration, metavar="DURATION", help="All that were given up so long ago.")
@as_json
@click.pass_context
def prune(context: click.Context, *, events: tuple[str, ...], older_than: int | None, as_json: bool) -> None:
    """Take dead letters from the list. Their incidents are closed; trace still shows them."""
    if bool(events) == (older_than is not None):
        raise click.UsageError("name events, or say --older-than")
    count = ask(context, lambda gateway: gateway.prune_dead(*events, older_than_ms=older_than or 0))
    if as_json:
        emit_json({"count": count})
    else:
        note(f"{count} left the list")


@click.group(invoke_without_command=True)
@click.option("--all", "closed", is_flag=True, help="Closed ones too.")
@as_json
@click.pass_context
def incidents(context: click.Context, *, closed: bool, as_json: bool) -> None:
    """Promises that this node sees broken. What, about which event or node, since when."""
    if context.invoked_subcommand is not None:
        return
    rows = ask(context, lambda gateway: gateway.incidents(closed=closed))
    if as_json:
        emit_json(rows)
        return
    shown = [
        (row.kind, row.subject, row.detail, moment(row.opened_at_ms), moment(row.closed_at_ms))
        for row in rows
    ]
    columns = ("incident", "about", "detail", "opened", "closed")
    table(columns, shown, empty="no incidents" if closed else "no open incidents")


@incidents.command("close")
@click.argument("about", nargs=-1)
@click.option("--kind", help="Only incidents of this kind.")
@click.option("--older-than", type=duration, metavar="DURATION", help="Only those opened so long ago.")
@as_json
@click.pass_context
def close_incidents(
    context: click.Context, *, about: tuple[str, ...], kind: str | None, older_than: int | None, as_json: bool
) -> None:
    """Close what has been seen and tells of the past. Incidents about ABOUT, of a kind or of an age.

    Others end with their reason: a full disk, a message that nobody has accepted yet.
    """
    if not about and kind is None and older_than is None:
        raise click.UsageError("say what they are about, --kind or --older-than")
    count = ask(context, lambda gateway: gateway.close_incidents(*about, kind=kind, older_than_ms=older_than))
    if as_json:
        emit_json({"count": count})
    else:
        note(f"{counted(count, 'incident')} closed")


COMMANDS = (trace, dead, incidents)
