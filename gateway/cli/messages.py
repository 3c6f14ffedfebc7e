"""``send``, ``reply``, ``inbox``, ``watch``: speaking as an agent."""

import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.bars import sending
from gateway.cli.exits import Exit
from gateway.cli.homes import ask_as, speaker, wait
from gateway.cli.limits import ANSWER_WITHIN_S
from gateway.cli.options import as_agent, as_json, as_json_lines, duration
from gateway.cli.output import emit_json, emit_json_line, moment, note, table, text_of
from outbox.plaintext import plain

if TYPE_CHECKING:
    from gateway.api.answers import SentAnswer
    from gateway.api.rows import InboxRow
    from gateway.api.trace import EventTrace
    from gateway.client import AgentClient
    from gateway.client.agent import Level
    from outbox.blobref import BlobRef

_TEXT = click.argument("text", required=False)
_FILE = click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Send a file of any size as it is, in place of a text.",
)
_MEDIA = click.option("--content-type", "media", help="Media type of the file (default: by its name).")


def _body(text: str | None, file: Path | None) -> str | None:
    """The text of a message: argument, or stdin for ``-`` and for a pipe; None with a file."""
    if text is not None and file is not None:
        raise click.UsageError("give a text or --file, not both")
    if file is not None:
        return None
    if text is None and sys.stdin.isatty():
        raise click.UsageError("no text: give it as an argument, with --file, or on stdin")
    if text is None or text == "-":
        raw = sys.stdin.buffer.read()
    else:
        return _said(text)
    try:
        return _said(raw.decode())
    except UnicodeDecodeError:
        raise click.UsageError("the text is not UTF-8") from None


async def _uploaded(me: "AgentClient", file: Path | None, media: str | None) -> "BlobRef | None":
    """Bring a file to the gateway, with a bar on a terminal."""
    import mimetypes

    from outbox.blobref import OCTETS

    if file is None:
        if media is not None:
            raise click.UsageError("--content-type says what a --file is")
        return None
    guessed = media or mimetypes.guess_type(file.name)[0] or OCTETS
    with sending(file) as bar:
        return await me.blobs.upload(
            file, content_type=guessed, within_s=ANSWER_WITHIN_S, progress=bar.update
        )


def _said(text: str) -> str:
    """Nobody means to send nothing: a script whose variable or pipe is empty is told so."""
    if not text:
        raise click.UsageError("the text is empty")
    return text


@click.command()
@click.argument("to")
@_TEXT
@_FILE
@_MEDIA
@as_agent
@click.option("--thread", help="Conversation to put it in.")
@click.option("--priority", type=click.IntRange(0, 4), help="0 critical … 2 normal … 4 low.")
@click.option("--type", "type_", help="Application type.")
@click.option("--schema", metavar="NAME", help="Name of the schema that the text follows, for the receiver.")
@click.option("--traceparent", help="The trace that it belongs to (W3C Trace Context).")
@click.option("--id", "id_", help="Idempotency key: the same one sends once.")
@click.option("--expires", type=duration, metavar="DURATION", help="Give up after so long (default 7d).")
@click.option("--cause", metavar="EVENT", help="The event of the inbox that this answers.")
@click.option(
    "--wait", "wait_", is_flag=True, help="If nobody owns the agent now: keep it until somebody does."
)
@click.option("--wait-for", type=click.Choice(["accepted", "processed", "reply"]), help="Wait until then.")
@click.option(
    "--timeout", type=duration, metavar="DURATION", default="30s", show_default=True, help="How long to wait."
)
@as_json
@click.pass_context
def send(
    context: click.Context,
    *,
    to: str,
    text: str | None,
    file: Path | None,
    media: str | None,
    agent: str,
    thread: str | None,
    priority: int | None,
    type_: str | None,
    schema: str | None,
    traceparent: str | None,
    id_: str | None,
    expires: int | None,
    cause: str | None,
    wait_: bool,
    wait_for: "Level | None",
    timeout: int,
    as_json: bool,
) -> int:
    """Send TEXT (or stdin) to an agent: NAME or NAME@NODE. Prints the event's id.

    TO may also be a list (ann,bob@vps), group:NAME, or * for everybody.
    """
    body = _body(text, file)

    async def work() -> int:
        async with speaker(context, agent) as gateway:
            me = gateway.agent(agent)
            ref = await _uploaded(me, file, media)
            sent = await me.send(
                to,
                body,
                file=ref,
                type=type_,
                schema=schema,
                traceparent=traceparent,
                thread=thread,
                priority=priority,
                expires_in_ms=expires,
                id=id_,
                cause=cause,
                wait=wait_,
                within_s=ANSWER_WITHIN_S,
            )
            if not as_json:
                click.echo(sent.event_id)
                note(_sent(sent, waits=wait_))
            if wait_for is None:
                if as_json:
                    emit_json(sent)
                return Exit.OK
            reached = await me.wait_for(sent.event_id, wait_for, timeout / 1000)
            answer = await _answer(me, reached) if wait_for == "reply" else None
        return _report(sent, reached, answer, as_json=as_json)

    return wait(work())


def _sent(sent: "SentAnswer", *, waits: bool = False) -> str:
    if sent.nodes:
        return f"to {sent.to.agent} at {', '.join(sent.nodes)}, thread {sent.thread_id}"
    if sent.to.node is None and waits:
        return f"{sent.to.agent} has no owner: it waits for one until it expires"
    if sent.to.node is None:
        return f"{sent.to.agent} has no owner: it is a dead letter already"
    again = " (sent before under this id)" if sent.duplicate else ""
    return f"to {sent.to.agent} at {sent.to.node}, thread {sent.thread_id}{again}"


async def _answer(me: "AgentClient", reached: "EventTrace") -> "InboxRow | None":
    rows = await me.inbox(done=True, limit=1_000)
    return next((row for row in rows if row.corr_id == reached.event_id and row.kind == "reply"), None)


def _report(sent: "SentAnswer", reached: "EventTrace", answer: "InboxRow | None", *, as_json: bool) -> int:
    failed = reached.state == "dead_letter" or any(step.outcome == "failed" for step in reached.steps)
    if as_json:
        emit_json({"sent": sent, "trace": reached, "reply": answer})
    elif answer is not None:
        click.echo(plain(_text(answer), layout=True))
    else:
        note(f"{reached.state}{': ' + reached.steps[-1].error if reached.steps[-1].error else ''}")
    return Exit.FAILED if failed else Exit.OK


@click.command()
@click.argument("event")
@_TEXT
@_FILE
@_MEDIA
@as_agent
@click.option("--id", "id_", help="Idempotency key: the same one replies once.")
@as_json
@click.pass_context
def reply(
    context: click.Context,
    *,
    event: str,
    text: str | None,
    file: Path | None,
    media: str | None,
    agent: str,
    id_: str | None,
    as_json: bool,
) -> None:
    """Answer EVENT of the inbox with TEXT (or stdin). Its turn is done with it."""
    body = _body(text, file)

    async def work(me: "AgentClient") -> "SentAnswer":
        ref = await _uploaded(me, file, media)
        return await me.reply(event, body, file=ref, id=id_, within_s=ANSWER_WITHIN_S)

    sent = ask_as(context, agent, work)
    if as_json:
        emit_json(sent)
        return
    click.echo(sent.event_id)
    note(_sent(sent))


@click.command()
@click.argument("event")
@click.option("--failed", metavar="WHY", help="The turn failed, and why; without it, it went well.")
@as_agent
@as_json
@click.pass_context
def ack(context: click.Context, *, event: str, failed: str | None, agent: str, as_json: bool) -> None:
    """End the turn of EVENT without an answer. A reply that was read is cleared like this, too."""
    settled = ask_as(context, agent, lambda me: me.ack(event, failed=failed, within_s=ANSWER_WITHIN_S))
    if as_json:
        emit_json(settled)
    else:
        note("it was over before" if settled.duplicate else "done")


@click.command()
@as_agent
@click.option("--all", "done", is_flag=True, help="Finished ones too.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@as_json
@click.pass_context
def inbox(context: click.Context, *, agent: str, done: bool, limit: int, as_json: bool) -> None:
    """Look at an agent's inbox; looking acknowledges nothing."""
    rows = ask_as(context, agent, lambda me: me.inbox(done=done, limit=limit))
    if as_json:
        emit_json(rows)
        return
    shown = [
        (
            row.event_id,
            row.kind,
            _sender(row),
            row.state,
            moment(row.accepted_at_ms),
            _text(row),
        )
        for row in rows
    ]
    columns = ("event", "kind", "from", "state", "accepted", "text")
    table(columns, shown, empty=f"nothing for {agent}" if done else f"nothing open for {agent}")


@click.command()
@as_agent
@as_json_lines
@click.pass_context
def watch(context: click.Context, *, agent: str, as_json: bool) -> None:
    """Show what comes for an agent, as it comes. Until interrupted; acknowledges nothing."""

    async def work() -> None:
        async with speaker(context, agent) as gateway, aclosing(gateway.agent(agent).watch()) as rows:
            async for row in rows:
                if as_json:
                    emit_json_line(row)
                else:
                    labels = f" [{row.schema}]" if row.schema is not None else ""
                    head = plain(f"{row.event_id} {_sender(row)}{labels}: ")
                    click.echo(head + plain(_text(row), layout=True))
                    sys.stdout.flush()

    wait(work())


def _text(row: "InboxRow") -> str:
    ref = row.payload_ref
    return text_of(row.payload) if ref is None else f"{ref.sha256} ({ref.bytes} B)"


def _sender(row: "InboxRow") -> str:
    return f"{row.sender or '-'}@{row.from_node}"


COMMANDS = (send, reply, ack, inbox, watch)
