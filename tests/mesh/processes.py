"""Real gateways as real processes: own homes, own ports, killed by their own process ids.

Nothing here sleeps for a guessed time: a condition is looked at again and again within a bound.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from auth.joincodes import decode_join_code
from auth.keyring import Keyring
from gateway.client import GatewayClient
from gateway.clock import Clock
from gateway.errors import Denied, TimedOut, Unreachable
from gateway.fleet.ports import free_ports
from gateway.founding import found
from gateway.home import Home
from gateway.joining import join
from outbox.ids import NodeId
from outbox.reader import JournalReader

ENGINE_HOST = os.environ.get("TEST_ENGINE_HOST", "inline")
"""Where the gateways of these tests write their journals, unless a test says so itself."""

LOOK_EVERY_S = 0.02
READY_WITHIN_S = 60.0
"""Of a start on a machine that does ten other things; only a failure waits so long."""
DEATH_WITHIN_S = 60.0
LOST = "the process that writes the journal ended by itself"

_Value = TypeVar("_Value")


async def until(look: Callable[[], Awaitable[_Value]], within_s: float, what: str) -> _Value:
    """The first true answer; a gateway that does not answer is a false one."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            found = await look()
        except (Unreachable, TimedOut) as error:
            found, last = None, repr(error)
        else:
            last = repr(found)
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}; last seen: {last[:400]}"
        await asyncio.sleep(LOOK_EVERY_S)


class Node:
    """One gateway: its home, and its process while it runs."""

    def __init__(self, name: str, root: Path, **settings: object) -> None:
        self.name = NodeId(name)
        self.home = Home(root / name, root / "r")
        (self.port,) = free_ports(1)
        self.settings: dict[str, object] = {"listen.port": self.port, "engine.host": ENGINE_HOST, **settings}
        self.env = {"GATEWAY_HOME": str(self.home.root), "XDG_RUNTIME_DIR": str(root / "r")}
        self.home = Home.of(self.env)
        self.process: subprocess.Popen[bytes] | None = None
        self.errors = root / f"{name}.stderr"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def found(self) -> None:
        """``gateway init``."""
        found(self.home, self.name, Clock(), self.settings)

    async def join(self, issuer: "Node", *, reads_all: bool = False) -> None:
        """``gateway invite`` there, ``gateway join`` here."""
        async with issuer.client() as gateway:
            code = (await gateway.invite(self.name, reads_all=reads_all)).join_code
        await join(self.home, decode_join_code(code), None, Clock(), self.settings)

    def start(self, crashpoint: str = "", *, tracer: Sequence[str] = (), **environ: str) -> None:
        """``gateway run``, which dies at a crash point if one is named, below a tracer if one is given."""
        assert self.process is None, "it runs already"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
        env = {**inherited, **self.env, "GATEWAY_CRASHPOINT": crashpoint, **environ}
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*tracer, sys.executable, "-m", "gateway", "run"], env=env, stdout=errors, stderr=errors
            )

    async def ready(self, within_s: float = READY_WITHIN_S) -> "Node":
        """Wait until it answers."""

        async def look() -> bool:
            assert self.running, f"{self.name} ended: {self.tail()}"
            async with self.client() as gateway:
                return (await gateway.status()).ready

        await until(look, within_s, f"{self.name} is ready")
        return self

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def dead(self, within_s: float = DEATH_WITHIN_S) -> None:
        """Wait until it has died by itself: by SIGKILL, or because the process of its journal did."""

        async def look() -> bool:
            return not self.running

        await until(look, within_s, f"{self.name} dies")
        assert self.process is not None
        lost = self.process.returncode == 1 and LOST in self.tail()
        assert self.process.returncode == -signal.SIGKILL or lost, self.tail()
        self.process = None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process if it runs, and wait for its end."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(DEATH_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(DEATH_WITHIN_S)

    def stop_process(self) -> None:
        """SIGSTOP: it is there and says nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def continue_process(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def client(self) -> GatewayClient:
        """As the operator; close it."""
        return GatewayClient(socket=self.home.socket)

    def journal(self) -> JournalReader:
        """A connection of our own to its journal; close it."""
        return JournalReader.open(self.home.journal)

    @property
    def key(self):
        return Keyring(self.home.keys).node_key(Clock().entropy)

    def log(self) -> str:
        return self.home.log.read_text() if self.home.log.exists() else ""

    def tail(self) -> str:
        return self.errors.read_text()[-3000:]

    async def sees(self, *agents: str, within_s: float = READY_WITHIN_S) -> None:
        """Wait until it knows these agents and where they live."""

        async def look() -> bool:
            async with self.client() as gateway:
                known = {row.name for row in await gateway.agents() if row.node is not None}
            return set(agents) <= known

        await until(look, within_s, f"{self.name} knows {agents}")

    async def linked(self, *nodes: str, within_s: float = READY_WITHIN_S) -> None:
        """Wait until its links to these nodes are up."""

        async def look() -> bool:
            async with self.client() as gateway:
                up = {link.node for link in (await gateway.status()).links if link.state == "up"}
            return set(nodes) <= up

        await until(look, within_s, f"{self.name} is linked with {nodes}")

    async def add_agents(self, *names: str) -> None:
        async with self.client() as gateway:
            for name in names:
                await gateway.add_agent(name)


async def refused_with(call: Awaitable[object]) -> str:
    """The code with which a call is refused."""
    try:
        await call
    except Denied as denied:
        return denied.wire_code
    return ""
