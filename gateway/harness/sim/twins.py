"""Homes that run twice: the copies of one world, from the start until an operator stops them."""

from gateway.errors import CopyRunning
from gateway.harness.sim.agent import SimAgent
from gateway.harness.sim.clocks import SimClock
from gateway.harness.sim.dice import Dice
from gateway.harness.sim.gateway import SimGateway, SimHome
from gateway.harness.sim.habits import GOOD
from gateway.harness.sim.loop import SimLoop
from gateway.harness.sim.network import Network
from gateway.harness.sim.seeing import Unseen
from gateway.harness.sim.wire import WireEnd
from outbox.chain import Head
from outbox.ids import AgentId, NodeId


class Twin:
    """A copy of a home and the one process on it."""

    def __init__(self, gateway: SimGateway, copied_at: Head) -> None:
        self.gateway = gateway
        self.copied_at = copied_at
        """Where the two histories part."""
        self.runs = True


class Twins:
    """All of a world, by the node that each is a copy of; a node is copied once."""

    def __init__(self, network: Network, seed: int) -> None:
        self.of: dict[NodeId, Twin] = {}
        self._network = network
        self._seed = seed

    def start(self, home: SimHome, agents: list[AgentId], loop: SimLoop) -> SimGateway:
        """A second process begins, on a copy of what is on the first one's disk."""
        name = NodeId(home.name)
        clock = SimClock(self._network.timeline, Dice(self._seed, f"entropy of the copy of {name}"))
        copy = home.copied(clock)
        copy.disk.busy = loop.stop_for
        gateway = SimGateway(copy, self._network, loop, listens=False)
        dice = Dice(self._seed, f"agents of the copy of {name}")
        gateway.residents = [SimAgent(agent, GOOD, dice, Unseen()).live for agent in agents]
        self.of[name] = Twin(gateway, copy.disk.head())
        home.lost.append(copy.disk)
        loop.call_soon(gateway.start)
        return gateway

    def stop(self, name: NodeId) -> bool:
        """Its operator has found it; whether it still ran."""
        twin = self.of.get(name)
        if twin is None or not twin.runs:
            return False
        twin.runs = False
        twin.gateway.loop.kill()
        self._network.hang_up(twin.gateway)
        twin.gateway.home.disk.closed()
        return True

    def running(self) -> list[NodeId]:
        """The nodes that run twice."""
        return [name for name, twin in self.of.items() if twin.runs]

    def speaks(self, end: WireEnd) -> bool:
        """Whether a copy is at this end of a connection."""
        return bool(self.of) and any(end.owner is twin.gateway for twin in self.of.values())


def found_a_copy(error: BaseException | None) -> bool:
    """Whether a process ended since another one writes with its key."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(CopyRunning)[1] is None
    return isinstance(error, CopyRunning)
