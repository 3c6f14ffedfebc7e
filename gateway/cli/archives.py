"""``backup``, ``restore``, ``doubts``: a node in a file, back again, and what it has forgotten since."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.homes import ask, current_home
from gateway.cli.options import as_json
from gateway.cli.output import counted, emit_json, moment, note, table

if TYPE_CHECKING:
    from gateway.backup.manifest import Backup


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--with-keys", is_flag=True, help="Also the keys and tokens: whoever has the file can be this node."
)
@click.option("--without-blobs", is_flag=True, help="Leave out the files that messages name.")
@as_json
@click.pass_context
def backup(
    context: click.Context, *, file: Path, with_keys: bool, without_blobs: bool, as_json: bool
) -> None:
    """Write this node into FILE, and check it. The file is 0600; the gateway may run meanwhile."""
    from gateway.backup.making import make_backup
    from gateway.clock import Clock

    home = current_home(context)
    with _progress("copying") as progress:
        made = make_backup(
            home,
            file,
            with_keys=with_keys,
            with_blobs=not without_blobs,
            now_ms=Clock().wall_ms(),
            progress=progress,
        )
    whose = made.manifest
    if as_json:
        emit_json(_document(made))
    else:
        click.echo(f"{whose.node}: {whose.seq} events of epoch {whose.epoch}, verified, in {file}")
    _tell_blobs(made)
    if with_keys:
        note("it holds this node's private keys and tokens: whoever can read it can be this node")
    else:
        note("keys/ and the tokens are not in it: keep a copy of them in a safe place, once")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--force", is_flag=True, help="Set aside the databases of a home that is a node's already.")
@click.option("--without-blobs", is_flag=True, help="Leave out the files that are in it.")
@click.option(
    "--without-peers",
    is_flag=True,
    help="Do not wait for what other nodes remember: what was done before may be done again.",
)
@as_json
@click.pass_context
def restore(
    context: click.Context,
    *,
    file: Path,
    force: bool,
    without_blobs: bool,
    without_peers: bool,
    as_json: bool,
) -> None:
    """Make the home of a node from a backup. Its next start begins a new epoch and asks the others."""
    from gateway.backup.restoring import restore as put_back
    from gateway.clock import Clock

    home = current_home(context)
    with _progress("unpacking") as progress:
        made = put_back(
            home,
            file,
            force=force,
            ask=not without_peers,
            with_blobs=not without_blobs,
            environ=os.environ,
            now_ms=Clock().wall_ms(),
            progress=progress,
        )
    if as_json:
        emit_json(_document(made))
        return
    whose = made.manifest
    at = moment(whose.made_at_ms)
    click.echo(f"{whose.node} as it was at {at}: {whose.seq} events of epoch {whose.epoch}")
    _tell_blobs(made)
    note(f"home: {home.root}\nnext: gateway run; gateway status shows whose answer is waited for")


def _document(made: "Backup") -> dict[str, object]:
    import msgspec

    blobs = made.blobs
    counted = {"count": len(blobs.whole), "bytes": blobs.bytes, "damaged": blobs.damaged}
    return {**msgspec.to_builtins(made.manifest), "blobs": counted}


def _tell_blobs(made: "Backup") -> None:
    if made.blobs.whole:
        note(
            f"{counted(len(made.blobs.whole), 'file')} with {made.blobs.bytes} bytes, each what its name says"
        )
    if made.blobs.damaged:
        first = ", ".join(made.blobs.damaged[:5])
        missing = counted(len(made.blobs.damaged), "file")
        note(f"not in it, since missing or altered in the home: {missing}, {first}")


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    with click.progressbar(length=1, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def update(done: int, total: int) -> None:
            bar.length = max(1, total)
            bar.update(done - bar.pos)

        yield update


@click.group()
def doubts() -> None:
    """Whose answers a restored node waits for. They say what it had done for them before."""


@doubts.command("list")
@as_json
@click.pass_context
def listed(context: click.Context, *, as_json: bool) -> None:
    """Whose answer is waited for. Nothing of theirs is handed to an agent before."""
    status = ask(context, lambda gateway: gateway.status())
    rows = list(status.process.awaited)
    if as_json:
        emit_json(rows)
        return
    table(("node",), [(node,) for node in rows], empty="no answer is waited for")


@doubts.command("end")
@as_json
@click.pass_context
def end(context: click.Context, *, as_json: bool) -> None:
    """Wait no longer. What is open is handed to agents, and reported as possibly done before."""
    ended = ask(context, lambda gateway: gateway.end_doubts())
    if as_json:
        emit_json(ended)
        return
    click.echo(f"no longer waited for: {', '.join(ended.nodes) or 'nobody was'}")


COMMANDS = (backup, restore, doubts)
