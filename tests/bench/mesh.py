"""Two gateways and two agents, each agent in a process of its own, for round trips."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.client.agent import AgentClient
from gateway.client.turns import Turn
from gateway.home import Home
from tests.bench.gateways import Node, two_gateways
from tests.bench.mesh_answerer import TEXT

CREDIT = 256


class MeshPair:
    """Agent A of the pair; ``ask`` is one round trip."""

    def __init__(self, asker: AgentClient, gateways: tuple[Node, Node]) -> None:
        self.asker = asker
        """The agent that asks."""
        self.gateways = gateways
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.processes: dict[str, int] = {}
        """Process ids by what they are; this process is the asker."""

    async def ask(self) -> None:
        """Message, accepted and reply stored at the other side; reply here."""
        sent = await self.asker.send("answerer", TEXT)
        future = self._future(sent.event_id)
        await future
        del self._waiting[sent.event_id]

    async def listen(self) -> None:
        """Take the replies, and end their turns."""
        async with self.asker.turns("bench", credit=CREDIT) as turns, asyncio.TaskGroup() as work:
            async for turn in turns:
                self._future(turn.event.corr_id or "").set_result(None)
                work.create_task(_done(turn))

    def _future(self, event: str) -> asyncio.Future[None]:
        if event not in self._waiting:
            self._waiting[event] = asyncio.get_running_loop().create_future()
        return self._waiting[event]


async def _done(turn: Turn) -> None:
    await turn.ok()


@asynccontextmanager
async def mesh_pair(
    folder: Path, *, prefix: Sequence[str] = (), host: str = "inline"
) -> AsyncIterator[MeshPair]:
    """Two linked gateways with their agents at work."""
    folder.mkdir()
    async with two_gateways(folder, prefix=prefix, host=host) as (vps, mbp):
        socket = Home.of(mbp.environ).socket
        words = [sys.executable, "-m", "tests.bench.mesh_answerer", str(socket), str(CREDIT)]
        answerer = subprocess.Popen(words)
        pair = MeshPair(vps.client.agent("asker"), (vps, mbp))
        listening = asyncio.ensure_future(pair.listen())
        try:
            await asyncio.wait_for(pair.ask(), 20)
            pair.processes = {"vps": vps.pid, "mbp": mbp.pid, "answerer": answerer.pid}
            yield pair
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            answerer.terminate()
            answerer.wait(20)
