"""Two real gateways for a benchmark: own homes on the disk to be measured, joined by invite."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path

from gateway.client import GatewayClient
from gateway.errors import Unreachable
from gateway.fleet.process import children
from gateway.home import Home

READY_WITHIN_S = 30.0


class Node:
    """One gateway process and a client of it."""

    def __init__(
        self, name: str, folder: Path, runtime: Path, *, prefix: Sequence[str] = (), host: str = "inline"
    ) -> None:
        self.name = name
        self.prefix = tuple(prefix)
        """Goes before the command line of the gateway."""
        self.environ = {
            **os.environ,
            "GATEWAY_HOME": str(folder / name),
            "XDG_RUNTIME_DIR": str(runtime),
            "GATEWAY_ENGINE_HOST": host,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @cached_property
    def client(self) -> GatewayClient:
        """Of its home, once that is there."""
        return GatewayClient.of_home(Home.of(self.environ))

    def command(self, *words: str) -> str:
        """Run ``gateway`` for this home; its standard output."""
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *words],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        """Start it; ``ready`` says when it serves."""
        words = [*self.prefix, sys.executable, "-m", "gateway", "run", "--log-level", "error"]
        self._process = subprocess.Popen(words, env=self.environ, stderr=subprocess.DEVNULL)

    async def ready(self, others: int) -> None:
        """Wait until it serves and has this many links."""
        async with asyncio.timeout(READY_WITHIN_S):
            while True:
                with suppress(Unreachable):  # not up yet; the timeout ends it
                    links = (await self.client.status()).links
                    if sum(link.state == "up" for link in links) >= others:
                        return
                await asyncio.sleep(0.05)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """Processor time that its processes have taken so far."""
        return sum(map(cpu_s, (self.pid, *children(self.pid))))

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)


@asynccontextmanager
async def two_gateways(
    folder: Path, *, prefix: Sequence[str] = (), host: str = "inline"
) -> AsyncIterator[tuple[Node, Node]]:
    """``vps`` with agent ``asker``, ``mbp`` with agent ``answerer``, linked."""
    with tempfile.TemporaryDirectory(prefix="gw") as runtime:
        vps, mbp = (Node(name, folder, Path(runtime), prefix=prefix, host=host) for name in ("vps", "mbp"))
        try:
            vps.command("init", "vps", "--port", "0")
            vps.start()
            await vps.ready(0)
            code = (await vps.client.invite("mbp")).join_code
            mbp.command("join", "--invite", code)
            mbp.start()
            await mbp.ready(1)
            await vps.ready(1)
            await vps.client.add_agent("asker")
            await mbp.client.add_agent("answerer")
            await _until_known(vps, "answerer")
            async with vps.client, mbp.client:
                yield vps, mbp
        finally:
            vps.stop()
            mbp.stop()


def cpu_s(pid: int) -> float:
    """Processor time of one process, by Linux; 0 elsewhere."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _until_known(node: Node, agent: str) -> None:
    async with asyncio.timeout(READY_WITHIN_S):
        while all(row.name != agent for row in await node.client.agents()):
            await asyncio.sleep(0.05)
