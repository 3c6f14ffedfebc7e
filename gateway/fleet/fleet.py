"""Some gateways below one directory: founded, joined by invite, filled with agents, stopped."""

import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from gateway.api.operator import InviteAnswer
from gateway.client import GatewayClient
from gateway.fleet.limits import READY_WITHIN_S
from gateway.fleet.process import GatewayProcess
from gateway.fleet.waiting import until
from gateway.founding import write_settings
from gateway.home import SOCKET_PATH_BYTES_MAX, Home
from outbox.ids import AgentId, NodeId

Tell = Callable[[str], None]
"""Says what is being done."""

Settings = Mapping[str, object]
"""By their names, like ``listen.port``."""

Look = Callable[[GatewayClient], Awaitable[bool]]
"""Asks one gateway something."""


class Fleet:
    """Gateways with homes of their own, of which the first one founds the mesh."""

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        settings: Mapping[NodeId, Settings],
        prefixes: Mapping[NodeId, Sequence[str]] | None = None,
    ) -> None:
        """Nothing is started yet. ``prefixes`` go before the command lines of a node."""
        self._settings = dict(settings)
        self.founder, *self.joiners = settings
        logs = root / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        clean = {name: value for name, value in environ.items() if not name.startswith("GATEWAY_")}
        self.runtime = _runtime(root / self.founder, clean)
        """What has to be in the environment besides ``GATEWAY_HOME`` to talk to them."""
        self.gateways = {
            node: _gateway(
                node,
                root / node,
                clean | self.runtime,
                logs / f"{node}.stderr.log",
                (prefixes or {}).get(node, ()),
            )
            for node in settings
        }

    async def begin(self, tell: Tell) -> tuple[str, ...]:
        """Found the mesh, let the others join with single-use invites, wait until all see all.

        Returns the join codes, which are spent. Raises FleetFailed.
        """
        founder = self.gateways[self.founder]
        tell(f"gateway init {self.founder}")
        await founder.command("init", self.founder)
        write_settings(founder.home, dict(self._settings[self.founder]))
        await founder.start()
        codes = tuple([await self._join(founder, node, tell) for node in self.joiners])
        tell("all links up")
        await self.linked()
        return codes

    async def _join(self, founder: GatewayProcess, node: NodeId, tell: Tell) -> str:
        joiner = self.gateways[node]
        tell(f"gateway invite {node}; gateway join")
        invite = await founder.command("invite", node, "--json")
        code = msgspec.json.decode(invite, type=InviteAnswer).join_code
        await joiner.command(*self.join_command(node), stdin=code)
        write_settings(joiner.home, dict(self._settings[node]))
        await joiner.start()
        return code

    def join_command(self, node: NodeId) -> tuple[str, ...]:
        """``gateway join`` as this node has to say it, with the code on stdin."""
        plain = ("--allow-plain",) if self._settings[node].get("listen.allow_plain") else ()
        return ("join", "--invite", "-", *plain)

    async def add_agents(self, homes: Mapping[AgentId, NodeId]) -> None:
        """Name the agents and wait until every node knows them."""
        for agent, node in homes.items():
            async with self.gateways[node].client() as client:
                await client.add_agent(agent)
        await self.until("every agent is known", _knows(homes))

    async def remove_agent(self, agent: AgentId, node: NodeId) -> None:
        """Take an agent away and wait until every node has heard of it."""
        async with self.gateways[node].client() as client:
            await client.remove_agent(agent)
        await self.until(f"{agent} has left", _knows({agent: None}))

    def check(self) -> None:
        """Raises FleetFailed when a gateway ended that nobody has stopped."""
        for gateway in self.gateways.values():
            gateway.check()

    async def linked(self) -> None:
        """Wait until all links are up. Raises FleetFailed."""
        nodes = set(self.gateways)

        async def all_up(client: GatewayClient) -> bool:
            rows = await client.nodes()
            return {row.node for row in rows} == nodes and all(row.here or row.link == "up" for row in rows)

        await self.until("all links are up", all_up)

    async def stop(self) -> None:
        """Stop all of them."""
        for gateway in self.gateways.values():
            gateway.terminate()
        for gateway in self.gateways.values():
            await gateway.stop()

    async def until(self, what: str, look: Look, within_s: float = READY_WITHIN_S) -> None:
        """Wait until each gateway says so. Raises FleetFailed."""
        for node, gateway in self.gateways.items():
            async with gateway.client() as client:
                await until(f"at {node}, {what}", partial(_look, gateway, client, look), within_s)


async def _look(gateway: GatewayProcess, client: GatewayClient, look: Look) -> bool:
    gateway.check()
    return await look(client)


def _knows(homes: Mapping[AgentId, NodeId | None]) -> Look:
    async def knows(client: GatewayClient) -> bool:
        seen = {row.name: row.node for row in await client.agents()}
        return all(agent in seen and seen[agent] == node for agent, node in homes.items())

    return knows


def _gateway(
    node: NodeId, root: Path, environ: Mapping[str, str], stderr: Path, prefix: Sequence[str]
) -> GatewayProcess:
    own = {**environ, "GATEWAY_HOME": str(root)}
    return GatewayProcess(node, Home.of(own), own, stderr, prefix)


def _runtime(home_root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """A directory of our own for the sockets only when the user's is too long a path for them."""
    home = Home.of({**environ, "GATEWAY_HOME": str(home_root)})
    if len(os.fsencode(home.socket)) <= SOCKET_PATH_BYTES_MAX:
        return {}
    return {"XDG_RUNTIME_DIR": tempfile.mkdtemp(prefix="gw-", dir="/tmp")}
