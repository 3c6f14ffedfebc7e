"""The three gateways of the demo."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.demo.limits import SLA_ACCEPT_MS, SLA_PROCESS_MS
from gateway.fleet.fleet import Fleet, Tell
from gateway.fleet.ports import free_ports
from outbox.ids import AgentId, NodeId

SEED, OTHER, KILLED = NodeId("vps"), NodeId("mbp"), NodeId("lab")
NODES = (SEED, OTHER, KILLED)
"""The seed first; the last one is killed."""


class DemoMesh(Fleet):
    """Three gateways below one directory; nothing is shared but loopback."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        ports = zip(NODES, free_ports(len(NODES)), strict=True)
        super().__init__(root, environ, {node: _settings(port) for node, port in ports})

    async def fill(self, homes: Iterable[tuple[AgentId, NodeId]], leaver: AgentId, tell: Tell) -> None:
        """Name the agents; ``leaver`` is taken away again once every node has heard of it."""
        placed = dict(homes)
        tell(f"{len(placed)} agents")
        await self.add_agents(placed)
        await self.remove_agent(leaver, placed[leaver])


def _settings(port: int) -> dict[str, object]:
    return {"listen.port": port, "sla.accept_ms": SLA_ACCEPT_MS, "sla.process_ms": SLA_PROCESS_MS}
