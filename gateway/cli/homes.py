"""Which home a command works on, and how it speaks to its gateway."""

import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gateway.errors import Unreachable

if TYPE_CHECKING:
    from auth.keys import SigningKey
    from gateway.client import AgentClient, GatewayClient
    from gateway.home import Home

_Result = TypeVar("_Result")

AGENT_VARIABLE = "GATEWAY_AGENT"


def home_of(path: Path | None) -> "Home":
    """The home of a path, or of the environment. It need not exist."""
    from gateway.home import Home

    environ = dict(os.environ)
    if path is not None:
        environ["GATEWAY_HOME"] = str(path)
    return Home.of(environ)


def current_home(context: click.Context) -> "Home":
    """The home that ``--home`` or the environment names."""
    return home_of(context.find_root().obj)


def made_home(context: click.Context) -> "Home":
    """The home of a command that speaks to its gateway. Raises Unreachable when none was made there."""
    from gateway.home import LOST_JOURNAL

    home = current_home(context)
    if not os.access(home.journal, os.F_OK):  # a path that may not be looked at is no home of ours either
        what = f"no gateway answers: {home.root} is no home of a node"
        hint = "name it with --home or GATEWAY_HOME, or make one: gateway init (or join)"
        if os.access(home.keys, os.X_OK) and any(home.keys.glob("*.key")):
            what, hint = (
                f"no gateway answers: {home.root} has the keys of a node and no journal",
                LOST_JOURNAL,
            )
        raise Unreachable(what, hint=hint)
    return home


def operator(context: click.Context) -> "GatewayClient":
    """The gateway of the home, as its operator over the Unix socket. Raises Unreachable."""
    from gateway.client import GatewayClient

    return GatewayClient.of_home(made_home(context))


def ask(context: click.Context, question: Callable[["GatewayClient"], Awaitable[_Result]]) -> _Result:
    """Put one question to the gateway of the home, as its operator."""

    async def work() -> _Result:
        async with operator(context) as gateway:
            return await question(gateway)

    return wait(work())


def speaker(context: click.Context, agent: str) -> "GatewayClient":
    """The gateway of the home as an agent, by its token; without a token file as its operator.

    Raises InvalidId, HomeError, Unreachable.
    """
    from gateway.client import GatewayClient
    from outbox.ids import agent_id

    name, home = agent_id(agent), made_home(context)
    return GatewayClient.of_home(home, name if home.token(name).exists() else None)


def ask_as(
    context: click.Context, agent: str, question: Callable[["AgentClient"], Awaitable[_Result]]
) -> _Result:
    """Put one question to it as an agent. Raises as ``speaker``."""

    async def work() -> _Result:
        async with speaker(context, agent) as gateway:
            return await question(gateway.agent(agent))

    return wait(work())


def node_key(home: "Home") -> "SigningKey":
    """The key of a home that has one; none is made. Raises HomeError and the keyring's errors."""
    from auth.keyring import Keyring

    home.check()
    home.need_journal()
    return Keyring(home.keys).kept_node_key()


def wait(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a command's asynchronous part."""
    import asyncio

    return asyncio.run(work)
