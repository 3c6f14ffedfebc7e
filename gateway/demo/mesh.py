"""The three gateways of the demo: founded, joined by invite, filled with agents, killed, stopped."""

import os
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from gateway.api.operator import InviteAnswer
from gateway.client import GatewayClient
from gateway.demo.limits import READY_WITHIN_S, SLA_ACCEPT_MS, SLA_PROCESS_MS
from gateway.demo.process import GatewayProcess
from gateway.demo.waiting import until
from gateway.founding import write_settings
from gateway.home import SOCKET_PATH_BYTES_MAX, Home
from outbox.ids import AgentId, NodeId

SEED, OTHER, KILLED = NodeId("vps"), NodeId("mbp"), NodeId("lab")
NODES = (SEED, OTHER, KILLED)
"""The seed first; the last one is killed."""

Tell = Callable[[str], None]
"""Says what is being done."""


class DemoMesh:
    """Three gateways below one directory; nothing is shared but loopback."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        logs = root / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        clean = {name: value for name, value in environ.items() if not name.startswith("GATEWAY_")}
        runtime = _runtime(root, clean)
        self.gateways = {
            node: _gateway(node, root / node, clean | runtime, logs / f"{node}.stderr.log") for node in NODES
        }
        self.runtime = runtime
        """What has to be in the environment besides ``GATEWAY_HOME`` to talk to it."""

    async def begin(self, tell: Tell) -> None:
        """Found the mesh, let the others join with single-use invites, wait until all see all."""
        ports = dict(zip(NODES, _free_ports(len(NODES)), strict=True))
        seed = self.gateways[SEED]
        tell(f"gateway init {SEED}")
        await seed.command("init", SEED)
        _configure(seed.home, ports[SEED])
        await seed.start()
        for node in NODES[1:]:
            joiner = self.gateways[node]
            tell(f"gateway invite {node}; gateway join")
            invite = await seed.command("invite", node, "--json")
            code = msgspec.json.decode(invite, type=InviteAnswer).join_code
            await joiner.command("join", "--invite", "-", stdin=code)
            _configure(joiner.home, ports[node])
            await joiner.start()
        tell("all links up")
        await self._until("all links are up", _all_links_up)

    async def add_agents(self, homes: Iterable[tuple[AgentId, NodeId]], leaver: AgentId, tell: Tell) -> None:
        """Name the agents; ``leaver`` is taken away again once every node has heard of it."""
        placed = dict(homes)
        tell(f"{len(placed)} agents")
        for agent, node in placed.items():
            async with self.gateways[node].client() as client:
                await client.add_agent(agent)
        await self._until("every node knows every agent", _knows(placed))
        gone = placed.pop(leaver)
        async with self.gateways[gone].client() as client:
            await client.remove_agent(leaver)
        await self._until(f"every node knows that {leaver} has left", _knows({**placed, leaver: None}))

    def check(self) -> None:
        """Raises DemoFailed when a gateway ended that nobody has stopped."""
        for gateway in self.gateways.values():
            gateway.check()

    async def rejoined(self) -> None:
        """Wait until all links are up again after a restart. Raises DemoFailed."""
        await self._until("all links are up again", _all_links_up)

    async def stop(self) -> None:
        """Stop all of them."""
        for gateway in self.gateways.values():
            gateway.terminate()
        for gateway in self.gateways.values():
            await gateway.stop()

    async def _until(self, what: str, condition: Callable[[GatewayClient], Awaitable[bool]]) -> None:
        for node, gateway in self.gateways.items():
            async with gateway.client() as client:
                look = partial(_look, gateway, client, condition)
                await until(f"at {node}, {what}", look, READY_WITHIN_S)


async def _look(
    gateway: GatewayProcess, client: GatewayClient, condition: Callable[[GatewayClient], Awaitable[bool]]
) -> bool:
    gateway.check()
    return await condition(client)


async def _all_links_up(client: GatewayClient) -> bool:
    nodes = await client.nodes()
    return {row.node for row in nodes} == set(NODES) and all(row.here or row.link == "up" for row in nodes)


def _knows(homes: Mapping[AgentId, NodeId | None]) -> Callable[[GatewayClient], Awaitable[bool]]:
    async def knows(client: GatewayClient) -> bool:
        seen = {row.name: row.node for row in await client.agents()}
        return all(agent in seen and seen[agent] == node for agent, node in homes.items())

    return knows


def _gateway(node: NodeId, root: Path, environ: Mapping[str, str], stderr: Path) -> GatewayProcess:
    own = {**environ, "GATEWAY_HOME": str(root)}
    return GatewayProcess(node, Home.of(own), own, stderr)


def _configure(home: Home, port: int) -> None:
    settings: dict[str, object] = {
        "listen.port": port,
        "sla.accept_ms": SLA_ACCEPT_MS,
        "sla.process_ms": SLA_PROCESS_MS,
    }
    write_settings(home, settings)


def _runtime(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """A directory of our own for the sockets only when the user's is too long a path for them."""
    home = Home.of({**environ, "GATEWAY_HOME": str(root / SEED)})
    if len(os.fsencode(home.socket)) <= SOCKET_PATH_BYTES_MAX:
        return {}
    return {"XDG_RUNTIME_DIR": tempfile.mkdtemp(prefix="gw-", dir="/tmp")}


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    bound = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [place.getsockname()[1] for place in bound]
    finally:
        for place in bound:
            place.close()
