"""``collect``, ``lake``: outboxes into a directory of Parquet files, and its upkeep."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.collected import show_place, tell, tell_ends, tell_forks
from gateway.cli.homes import ask, current_home, home_of, node_key
from gateway.cli.options import as_json, as_json_lines, at_lake
from gateway.cli.output import emit_json, note, table
from outbox.errors import NotFound, StorageFailed
from outbox.ids import node_id
from spark.errors import LakeDamaged
from spark.objects import LakePath

if TYPE_CHECKING:
    from auth.keys import PublicKey
    from gateway.home import Home
    from gateway.lake.collector import Collected
    from outbox.ids import NodeId

_HOMES = click.option(
    "--home",
    "homes",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A node's home on this machine; repeatable (default: the current one).",
)

_COUNT = re.compile(r"(\d{1,9})([kM]?)", re.ASCII)
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


def _count(text: str) -> int:
    """``5000``, ``20k``, ``1M``. Raises BadParameter."""
    match = _COUNT.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise click.BadParameter(f"{text[:40]!r} is no number of events; write 5000, 20k or 1M")
    return int(match[1]) * _TIMES[match[2]]


@click.command()
@at_lake
@_HOMES
@click.option(
    "--from",
    "nodes",
    multiple=True,
    metavar="NODE",
    help="The copy of this node's outbox that the home holds; repeatable. Its gateway must run.",
)
@click.option("--all", "all_nodes", is_flag=True, help="Also all copies that the home holds.")
@click.option(
    "--links",
    is_flag=True,
    help="Over links: dial the mesh as the node of this home, whose gateway must not run.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="An outbox that `outbox export --raw` wrote; repeatable.",
)
@click.option("--follow", is_flag=True, help="Go on collecting until interrupted.")
@as_json_lines
@click.pass_context
def collect(
    context: click.Context,
    *,
    lake: LakePath,
    homes: tuple[Path, ...],
    nodes: tuple[str, ...],
    all_nodes: bool,
    links: bool,
    files: tuple[Path, ...],
    follow: bool,
    as_json: bool,
) -> None:
    """Add what is new in each outbox to the lake, verified. May be repeated at any time.

    Without --from or --all: the outboxes of the homes themselves. A seed's copies make one machine enough.
    With --links from wherever it can be dialled, all outboxes or those that --from names.
    """
    if files:
        if links or all_nodes or nodes or homes or follow:
            raise click.UsageError("--file is all that is collected: give it alone")
        for path in files:
            tell(_exported(context, path, lake), quiet=False, as_json=as_json)
        return
    if links:
        from gateway.cli.visits import collect_over_links

        if all_nodes or homes:
            raise click.UsageError("--links takes all outboxes over the network: not with --all or --home")
        only = [node_id(node) for node in nodes]
        collect_over_links(current_home(context), lake, only, follow=follow, as_json=as_json)
        return
    if nodes and all_nodes:
        raise click.UsageError("--from names some, --all takes all: give one of them")
    sources = [home_of(path) for path in homes] or [current_home(context)]
    keys = _keys(context) if nodes or all_nodes else {}
    for node in nodes:
        if node not in keys:
            raise NotFound(f"{node} is no node of this mesh", hint="see: gateway nodes")
    wanted = {node_id(node): keys[node_id(node)] for node in nodes} if nodes else keys
    for done in _rounds(follow=follow):
        for home in sources:
            _collect_home(home, lake, wanted, done, only_copies=bool(nodes), as_json=as_json)


def _rounds(*, follow: bool) -> Iterator[int]:
    """Numbers of the rounds, the first at once."""
    from threading import Event

    from spark.limits import COLLECT_EVERY_S

    yield 0
    for number in count(1) if follow else ():
        Event().wait(COLLECT_EVERY_S)
        yield number


def _collect_home(
    home: "Home",
    lake: LakePath,
    keys: dict["NodeId", "PublicKey"],
    done: int,
    *,
    only_copies: bool,
    as_json: bool,
) -> None:
    """One round: its own outbox, copies of these nodes' that it holds, and now and then proofs of forks."""
    from gateway.lake.homes import copied_nodes
    from spark.limits import PROOFS_EVERY

    found = {} if only_copies else _own(home, lake)
    here = keys if only_copies or not keys else copied_nodes(home)
    found |= _copies(home, {node: keys[node] for node in here if node in keys}, lake)
    tell(found, quiet=done > 0, as_json=as_json)
    if done % PROOFS_EVERY == 0:
        _keep_proofs(home, lake)


def _keys(context: click.Context) -> dict["NodeId", "PublicKey"]:
    """The key of each node of the mesh, from the gateway of the home."""
    from auth.keys import PublicKey

    return {row.node: PublicKey.from_text(row.key) for row in ask(context, lambda gateway: gateway.nodes())}


def _exported(context: click.Context, path: Path, lake: LakePath) -> dict["NodeId", "Collected"]:
    """An exported outbox, checked with its node's key: of this home, or as its running gateway knows it."""
    from gateway.clock import Clock
    from gateway.lake.exported import FileSource
    from gateway.lake.homes import collect_file, node_of
    from gateway.lake.lake import Lake

    source, home = FileSource(path), current_home(context)
    node = source.beginning.node
    is_own = home.journal.exists() and node_of(home) == node
    key = node_key(home).public if is_own else _keys(context).get(node)
    if key is None:
        raise NotFound(f"{node} is no node of this mesh", hint="see: gateway nodes")
    return {node: collect_file(source, key, Lake(lake), Clock().wall_ms(), show_place)}


def _own(home: "Home", lake: LakePath) -> dict["NodeId", "Collected"]:
    from gateway.clock import Clock
    from gateway.lake.homes import collect_home
    from gateway.lake.lake import Lake

    node, collected = collect_home(
        home, node_key(home).public, Lake(lake), Clock().wall_ms(), progress=show_place
    )
    return {node: collected}


def _copies(home: "Home", keys: dict["NodeId", "PublicKey"], lake: LakePath) -> dict["NodeId", "Collected"]:
    """Copies that the home holds; of nodes that were put out as much as counts, which is said."""
    from gateway.clock import Clock
    from gateway.lake.ended import ends, home_view
    from gateway.lake.homes import collect_copies, mesh_of
    from gateway.lake.lake import Lake

    if not keys:
        return {}
    clock = Clock()
    view = home_view(home, mesh_of(home), clock)
    tell_ends({node: seq for node, seq in ends(view).items() if node in keys})
    return collect_copies(home, keys, Lake(lake), clock.wall_ms(), show_place, view=view)


def _keep_proofs(home: "Home", lake: LakePath) -> None:
    """What its state room proves of forks. One that cannot be read costs no outbox."""
    from gateway.clock import Clock
    from gateway.lake.lake import Lake
    from gateway.lake.proofs import home_proofs, keep_proofs

    try:
        proofs = home_proofs(home, Clock())
    except StorageFailed as error:
        note(f"proofs of forks were not read: {error}")
        return
    tell_forks(keep_proofs(Lake(lake), proofs))


@click.group()
def lake() -> None:
    """Look after collected events."""


@lake.command()
@at_lake
@as_json
def compact(*, lake: LakePath, as_json: bool) -> None:
    """Write one file in place of many small ones. Reports may read meanwhile; repeat it after a crash."""
    from gateway.clock import Clock
    from gateway.fleet.progress import make_progress
    from gateway.lake.lake import Lake

    place = Lake(lake)
    streams = place.streams()
    written = removed = 0
    with make_progress(Clock()) as progress:
        progress.begin("compact", len(streams) or 1)
        for done, stream in enumerate(streams):
            progress.at(done, "/".join(stream))
            result = place.compact(stream)
            written, removed = written + result.written, removed + result.removed
    if as_json:
        emit_json({"written": written, "removed": removed})
    else:
        click.echo(f"{written} files written, {removed} removed that they cover")


@lake.command()
@at_lake
@_HOMES
@as_json
@click.pass_context
def verify(context: click.Context, *, lake: LakePath, homes: tuple[Path, ...], as_json: bool) -> None:
    """Read every file again. Checksums, names, order, holes; signatures of the nodes whose homes are here."""
    from gateway.lake.homes import node_of
    from gateway.lake.lake import Lake

    known = [home_of(path) for path in homes] or [current_home(context)]
    keys = {node_of(home): node_key(home).public.verify for home in known if home.journal.exists()}
    place = Lake(lake)
    found = place.verify(keys.get)
    unknown = sorted({node for node, _ in place.streams()} - keys.keys())
    if as_json:
        emit_json({"files": found.files, "rows": found.rows, "faults": found.faults, "unsigned": unknown})
    else:
        table(("file", "problem"), [(fault.path, fault.problem) for fault in found.faults], empty="no fault")
        note(
            f"{found.files} files, {found.rows} rows; signatures not checked: {', '.join(unknown) or 'none'}"
        )
    if found.faults:
        raise LakeDamaged(
            f"{len(found.faults)} files of {lake} are not what they should be",
            hint="move them away: the next collect reads their entries again",
        )


@lake.command()
@click.option(
    "--lake",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="An empty directory, or one that does not exist.",
)
@click.option(
    "--events", type=_count, default="100k", show_default=True, help="About so many: 5000, 20k, 1M."
)
@click.option("--seed", type=click.IntRange(0, 2**20), default=1, show_default=True)
@as_json
def generate(*, lake: Path, events: int, seed: int, as_json: bool) -> None:
    """Fill an empty directory with made-up history. Every class of incident is planted in it.

    What a report must find is in truth/: to try a report, its limits, or your own rules.
    """
    from gateway.clock import Clock
    from gateway.fleet.progress import make_progress
    from gateway.lake.generator import generate as fill

    with make_progress(Clock()) as progress:
        progress.begin("generate", events)
        made = fill(lake, events, seed, progress=lambda done, _: progress.at(min(done, events)))
    if as_json:
        emit_json(made)
        return
    total = sum(made.incidents.values())
    click.echo(f"{made.events} events, {total} incidents; judge them with: report --as-of {made.as_of}")


COMMANDS = (collect, lake)
