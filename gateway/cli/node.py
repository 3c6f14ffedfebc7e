"""``init``, ``join``, ``run``: making a node and running it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gateway.cli.homes import current_home, wait
from gateway.cli.options import as_json
from gateway.cli.output import emit_json, note

if TYPE_CHECKING:
    from gateway.app import Gateway
    from gateway.home import Home


_ADDRESS = (
    click.option("--host", help="Address to listen on for peers (default 127.0.0.1)."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        help="Port for peers (default 7420 for the first node, else any free one; 0: any).",
    ),
    click.option("--public", multiple=True, metavar="URL", help="How others reach this node; repeatable."),
    click.option(
        "--allow-plain",
        is_flag=True,
        help="Speak plain http with other machines, inside a tailnet or tunnel that encrypts.",
    ),
    click.option(
        "--local-port",
        type=click.IntRange(0, 65535),
        help="Loopback port for agents, beside the Unix socket.",
    ),
)


def _addressed(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_ADDRESS):
        command = option(command)
    return command


def _settings(home: "Home", default_port: int | None, given: dict[str, Any]) -> dict[str, object]:
    """What is written into ``gateway.toml``; checked before anything is made. Raises ConfigError."""
    from gateway.config import load

    port = given["port"] if given["port"] is not None else default_port
    values = {
        "listen.host": given["host"],
        "listen.port": port,
        "listen.allow_plain": given["allow_plain"] or None,
        "public.endpoints": list(given["public"]) or None,
        "local.port": given["local_port"],
    }
    settings = {key: value for key, value in values.items() if value is not None}
    load(home.config, {}, settings)
    return settings


@click.command()
@click.argument("node")
@_addressed
@as_json
@click.pass_context
def init(context: click.Context, /, *, node: str, as_json: bool, **address: Any) -> None:
    """Found a mesh: make the home of its first node, named NODE."""
    from gateway.clock import Clock
    from gateway.founding import found
    from outbox.ids import node_id

    home = current_home(context)
    founded = found(home, node_id(node), Clock(), _settings(home, None, address))
    if as_json:
        emit_json(founded)
        return
    click.echo(f"node {founded.node} of mesh {founded.mesh}")
    note(f"home: {home.root}\nnext: gateway run, then gateway invite NODE for each other machine")


@click.command()
@click.option(
    "--invite",
    required=True,
    envvar="GATEWAY_INVITE",
    metavar="CODE|-|@FILE",
    help="The join code; - reads it from stdin, @FILE from a file (default: $GATEWAY_INVITE).",
)
@click.option("--node", help="This node's name, if the invite names none.")
@_addressed
@as_json
@click.pass_context
def join(context: click.Context, /, *, invite: str, node: str | None, as_json: bool, **address: Any) -> None:
    """Join a mesh: make the home of a node that was invited. May be repeated until it succeeds."""
    from auth.joincodes import decode_join_code
    from gateway.clock import Clock
    from gateway.joining import join as join_mesh
    from outbox.ids import node_id

    code = decode_join_code(_code(invite), allow_plain=address["allow_plain"])
    name = node_id(node) if node is not None else None
    home = current_home(context)
    joined = wait(join_mesh(home, code, name, Clock(), _settings(home, 0, address)))
    if as_json:
        emit_json(joined)
        return
    click.echo(f"node {joined.node} of mesh {joined.mesh}")
    note(f"home: {home.root}\nnext: gateway run, then gateway agent add NAME")


def _code(invite: str) -> str:
    """A code from stdin or a file stays out of the list of processes and the shell's history."""
    if invite == "-":
        if sys.stdin.isatty():
            note("paste the join code, then a new line")
        return sys.stdin.readline()
    if invite.startswith("@"):
        try:
            return Path(invite[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(
                f"cannot read {invite[1:]}: {_reason(error)}", param_hint="--invite"
            ) from None
    return invite


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or "no file"


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Port for peers, instead of the settings'.")
@click.option("--local-port", type=click.IntRange(0, 65535), help="Loopback port for agents, likewise.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What is logged (default info).",
)
@click.option(
    "--engine-host",
    type=click.Choice(["inline", "process"]),
    help="Where the journal is written: here, or in a process of its own (default: the setting engine.host).",
)
@click.pass_context
def run(
    context: click.Context,
    *,
    port: int | None,
    local_port: int | None,
    log_level: str | None,
    engine_host: str | None,
) -> None:
    """Run the gateway of this home until SIGINT or SIGTERM."""
    from gateway.app import run as run_gateway
    from gateway.clock import Clock
    from gateway.config import load

    home = current_home(context)
    flags = {
        "listen.port": port,
        "local.port": local_port,
        "log.level": log_level,
        "engine.host": engine_host,
    }
    loaded = load(home.config, os.environ, flags)
    run_gateway(home, loaded.config, Clock(), lambda gateway: _ready(home, gateway))


def _ready(home: "Home", gateway: "Gateway") -> None:
    where = ", ".join(gateway.reach.endpoints) or "nothing; this node only dials"
    note(f"ready: peers reach {where}; agents reach {home.socket}")


COMMANDS = (init, join, run)
