"""The operator of a simulated node: lets agents live there, takes them away, announces what there is."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from gateway.engine.inputs import AddAgent, RemoveAgent
from gateway.errors import Busy, Denied
from gateway.harness.sim.agent import SimAgent
from gateway.harness.sim.announcements import Announcements
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.gateway import SimGateway
from gateway.harness.sim.standins import StandIns
from outbox.ids import AgentId, NodeId

_LOOKS_S = 5.0


class Operated(Protocol):
    """What an operator needs of a mesh (``gateway.harness.sim.mesh``)."""

    announcements: dict[NodeId, Announcements]
    away: set[AgentId]
    chronicle: Chronicle
    stand_ins: StandIns | None

    def residents(self, node: NodeId) -> Sequence[SimAgent]:
        """The agents of a node, and those that it stands in for."""
        ...


async def operate(mesh: Operated, gateway: SimGateway) -> None:
    """Let the agents of a node live there, but for those that are away; announce what there is."""
    while True:
        await mesh.announcements[NodeId(gateway.name)].say(gateway)
        here = {row.name for row in gateway.home.disk.agents()}
        for agent in mesh.residents(NodeId(gateway.name)):
            if (agent.name in here) == (agent.name in mesh.away):
                await _change(mesh, gateway, agent.name, add=agent.name not in here)
        await asyncio.sleep(_LOOKS_S)


async def _change(mesh: Operated, gateway: SimGateway, agent: AgentId, *, add: bool) -> None:
    req = gateway.runtime.req()
    named = _named(mesh.stand_ins, gateway, AddAgent(req, agent, b"\x00" * 32))
    try:
        await gateway.runtime.ask(named if add else RemoveAgent(req, agent))
    except (Busy, Denied):
        return  # the disk is full: at the next look
    mesh.chronicle.note(gateway.name, "agent", f"{agent} {'comes' if add else 'goes'}")


def _named(stand_ins: StandIns | None, gateway: SimGateway, request: AddAgent) -> AddAgent:
    """With who stands in for it, or for whom."""
    fallback = stand_ins.fallback.get(request.name) if stand_ins is not None else None
    if stand_ins is None or fallback is None:
        return request
    owner = stand_ins.owner[request.name]
    if owner != gateway.name:
        return replace(request, stands_in_for=owner)
    return replace(request, fallback=(fallback,), grace_ms=stand_ins.grace_ms)
