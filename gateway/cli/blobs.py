"""``blob list|get|put|verify``: files that are too large for a message."""

import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from gateway.cli.bars import sending
from gateway.cli.homes import ask, current_home, operator, speaker, wait
from gateway.cli.options import as_json
from gateway.cli.output import counted, emit_json, moment, note, table

if TYPE_CHECKING:
    from gateway.client.blobs import Blobs, Progress
    from outbox.blobref import BlobRef


@click.group()
def blob() -> None:
    """Files that events name: what is here, what is awaited."""


@blob.command("list")
@as_json
@click.pass_context
def list_blobs(context: click.Context, *, as_json: bool) -> None:
    """What is here, newest first, and what is named and still to come."""
    answer = ask(context, lambda gateway: gateway.list_blobs())
    if as_json:
        emit_json(answer)
        return
    rows = [(row.sha256, f"{row.bytes}", "here", moment(row.stored_at_ms)) for row in answer.blobs]
    rows += [
        (row.sha256, f"{row.here} of {row.bytes}", "awaited" if row.awaited else "to be copied", row.source)
        for row in answer.missing
    ]
    table(("blob", "bytes", "state", "since, or from"), rows, empty="no blobs")


@blob.command()
@click.argument("sha256")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@click.option("--as", "agent", metavar="AGENT", help="Read as an agent, which an event has to name it for.")
@click.pass_context
def get(context: click.Context, *, sha256: str, output: Path | None, agent: str | None) -> None:
    """Read the blob SHA256, to stdout or a file. Its hash is checked at the end."""
    from outbox.blobref import blob_id

    name = blob_id(sha256)
    if output is None and sys.stdout.isatty():
        raise click.UsageError("a terminal is no place for a blob: use -o FILE, or a pipe")

    async def work() -> None:
        async with operator(context) if agent is None else speaker(context, agent) as gateway:
            await _copy(gateway.blobs, await gateway.blobs.ref(name), output)

    wait(work())


async def _copy(blobs: "Blobs", ref: "BlobRef", output: Path | None) -> None:
    """A file gets its name when it is whole."""
    with click.progressbar(
        length=ref.bytes, label="reading", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        if output is None:
            await _pour(blobs, ref, sys.stdout.buffer, bar.update)
            return
        draft = output.with_name(f".{output.name}.part")
        try:
            with draft.open("wb") as file:
                await _pour(blobs, ref, file, bar.update)
            draft.replace(output)
        finally:
            draft.unlink(missing_ok=True)


async def _pour(blobs: "Blobs", ref: "BlobRef", file: BinaryIO, progress: "Progress") -> None:
    async with aclosing(blobs.read(ref)) as pieces:
        async for piece in pieces:
            file.write(piece)
            progress(len(piece))


@blob.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@as_json
@click.pass_context
def put(context: click.Context, *, file: Path, as_json: bool) -> None:
    """Bring a FILE to the gateway. A message has to name it within the hour; prints its hash."""

    async def work() -> "BlobRef":
        async with operator(context) as gateway:
            with sending(file) as bar:
                return await gateway.blobs.upload(file, progress=bar.update)

    ref = wait(work())
    if as_json:
        emit_json(ref)
    else:
        click.echo(ref.sha256)


@blob.command()
@as_json
@click.pass_context
def verify(context: click.Context, *, as_json: bool) -> None:
    """Hash every blob of this home; the gateway may run meanwhile. ``outbox verify`` does it too."""
    from gateway.cli.blobcheck import check_blobs

    checked = check_blobs(current_home(context))
    if as_json:
        emit_json(checked)
    else:
        note(f"{counted(checked.blobs, 'blob')} with {checked.bytes} bytes: each is what its name says")


COMMANDS = (blob,)
