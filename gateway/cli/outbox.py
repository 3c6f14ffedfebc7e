"""``outbox tail|verify|export|prune``: the log of this node."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from gateway.cli.homes import ask, current_home, node_key, operator, wait
from gateway.cli.limits import TAIL_EVERY_S
from gateway.cli.options import as_json, as_json_lines
from gateway.cli.output import counted, emit_json, emit_json_line, note

if TYPE_CHECKING:
    from gateway.api.rows import OutboxRow
    from outbox.reader import JournalReader


@click.group()
def outbox() -> None:
    """This node's outbox."""


@outbox.command()
@click.option("-f", "--follow", is_flag=True, help="Go on as it grows.")
@click.option("-n", "--lines", type=click.IntRange(1, 1_000), default=20, show_default=True)
@as_json_lines
@click.pass_context
def tail(context: click.Context, *, follow: bool, lines: int, as_json: bool) -> None:
    """The last entries."""

    import asyncio

    async def work() -> None:
        async with operator(context) as gateway:
            floor, newest = (await gateway.status()).floor_seq, await gateway.outbox(limit=1)
            after = max(floor, newest.head - lines)
            while True:
                answer = await gateway.outbox(after=after)
                for row in answer.entries:
                    emit_json_line(row) if as_json else _print_entry(row)
                after = answer.next
                if after >= answer.head and not follow:
                    return
                if after >= answer.head:
                    await asyncio.sleep(TAIL_EVERY_S)

    wait(work())


def _print_entry(row: "OutboxRow") -> None:
    from outbox.envelope import decode_event

    event = decode_event(bytes(row.event))
    to = row.header.to if isinstance(row.header.to, str) else ",".join(row.header.to)
    what = f"{row.seq:>8} {event.created_at} {event.kind:<11} {event.event_id}"
    about = f" about {event.corr_id}" if event.corr_id is not None else ""
    who = f" {event.source_agent_id}->{event.to_agent_id}" if event.to_agent_id is not None else ""
    click.echo(f"{what}{who}{about} to {to or '-'}")
    sys.stdout.flush()


@outbox.command()
@as_json
@click.pass_context
def verify(context: click.Context, *, as_json: bool) -> None:
    """Walk the chain, check all signatures, hash all blobs. The gateway may run meanwhile."""
    from gateway.cli.blobcheck import check_blobs

    key = node_key(current_home(context))
    with _reading(context) as reader:
        node, first = reader.identity().node, reader.beginning()
        with click.progressbar(
            length=reader.head().seq, label="verifying", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            head = reader.verify(key.public.verify, None, lambda seq, _: bar.update(seq - bar.pos))
    checked = check_blobs(current_home(context))
    if as_json:
        found = {
            "node": node,
            "epoch": head.epoch,
            "from": first.seq,
            "seq": head.seq,
            "hash": head.hash.hex(),
        }
        emit_json({**found, "blobs": checked.blobs})
    else:
        begins = f", from {first.epoch}/{first.seq} on" if first.seq else ""
        click.echo(f"{node}: sound up to {head.epoch}/{head.seq}{begins}; head {head.hash.hex()}")
        if checked.blobs:
            note(f"{counted(checked.blobs, 'blob')} with {checked.bytes} bytes: each is what its name says")


@outbox.command()
@click.option("--from", "first", type=click.IntRange(1), default=1, show_default=True, help="First position.")
@click.option("--to", "last", type=click.IntRange(1), help="Last position; to the end without it.")
@click.option("--raw", is_flag=True, help="All of it verbatim and signed: collect --file reads it anywhere.")
@click.pass_context
def export(context: click.Context, *, first: int, last: int | None, raw: bool) -> None:
    """Entries of the current epoch as NDJSON. Position, header and event; the gateway may run meanwhile."""
    if raw:
        if first != 1 or last is not None:
            raise click.UsageError("--raw is the whole outbox: not with --from or --to")
        _export_raw(context)
        return
    from gateway.api.rows import outbox_row
    from outbox.chain import Head
    from outbox.ids import Seq
    from outbox.limits import PAGE_BYTES_MAX, PAGE_ENTRIES_MAX

    with _reading(context) as reader:
        head = reader.head()
        end = min(last or head.seq, head.seq)
        at = Head(head.epoch, Seq(max(first - 1, _floor_of(reader))), b"")
        with click.progressbar(
            length=max(0, end - at.seq), label="exporting", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            while at.seq < end and (page := reader.read(at, PAGE_ENTRIES_MAX, PAGE_BYTES_MAX)) is not None:
                for entry in page.entries:
                    if entry.seq <= end:
                        emit_json_line(outbox_row(entry))
                bar.update(len(page.entries))
                at = page.checkpoint.head


def _export_raw(context: click.Context) -> None:
    from gateway.lake.exported import export as export_pages

    with (
        _reading(context) as reader,
        click.progressbar(
            length=reader.size().entries, label="exporting", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar,
    ):
        export_pages(reader, sys.stdout.buffer.write, lambda page: bar.update(len(page.entries)))
    sys.stdout.buffer.flush()


@outbox.command()
@click.option("--force", is_flag=True, help="Also what other nodes have not read: they will miss it.")
@as_json
@click.pass_context
def prune(context: click.Context, *, force: bool, as_json: bool) -> None:
    """Forget now what is beyond the retention.* settings. What is still owed stays in any case."""
    answer = ask(context, lambda gateway: gateway.prune_outbox(force=force))
    while answer.more:
        answer = ask(context, lambda gateway: gateway.prune_outbox(force=force))
    if as_json:
        emit_json(answer)
    else:
        note(f"{answer.entries} entries with {answer.bytes} bytes are left, after {answer.floor_seq}")


def _floor_of(reader: "JournalReader") -> int:
    """Of the current epoch: what was forgotten of it."""
    floor = reader.floor()
    return floor.seq if floor is not None and floor.epoch == reader.identity().epoch else 0


@contextmanager
def _reading(context: click.Context) -> "Iterator[JournalReader]":
    from outbox.reader import JournalReader

    reader = JournalReader.open(current_home(context).journal)
    try:
        yield reader
    finally:
        reader.close()


COMMANDS = (outbox,)
