"""One gateway of a fleet: its home, its process, its logs."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gateway.client import GatewayClient
from gateway.fleet.errors import FleetFailed
from gateway.fleet.limits import COMMAND_WITHIN_S, LOG_LINES, READY_WITHIN_S, STOP_WITHIN_S
from gateway.fleet.waiting import comes_true, until
from gateway.home import Home
from gateway.telemetry import redact_text
from outbox.ids import NodeId

_COMMAND = (sys.executable, "-m", "gateway")


class GatewayProcess:
    """Runs the real program, in a session of its own: a Ctrl-C in the terminal is for its parent alone."""

    def __init__(
        self,
        node: NodeId,
        home: Home,
        environ: Mapping[str, str],
        stderr: Path,
        prefix: Sequence[str] = (),
    ) -> None:
        """``prefix`` goes before every command line, like ``ip netns exec NAME``."""
        self.node = node
        self._prefix = tuple(prefix)
        self.home = home
        self._environ = dict(environ)
        self._stderr = stderr
        self._process: subprocess.Popen[bytes] | None = None

    def beside(self, root: Path, stderr: Path) -> "GatewayProcess":
        """Another process of the same node, on a home of its own."""
        environ = {**self._environ, "GATEWAY_HOME": str(root)}
        return GatewayProcess(self.node, Home.of(environ), environ, stderr, self._prefix)

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process is not None else None

    @property
    def pids(self) -> list[int]:
        """Of the running process, and on Linux of that of its journal, if it has one."""
        return [self.pid, *children(self.pid)] if self.pid is not None else []

    def client(self) -> GatewayClient:
        """The gateway as its operator sees it."""
        return GatewayClient.of_home(self.home)

    async def command(self, *arguments: str, stdin: str = "") -> str:
        """Run ``gateway <arguments>`` in this home and return its output. Raises FleetFailed."""
        return await asyncio.to_thread(self._command, arguments, stdin)

    def _command(self, arguments: Sequence[str], stdin: str) -> str:
        shown = f"gateway {' '.join(arguments)}"
        try:
            done = subprocess.run(  # noqa: S603 - our own program, no shell
                [*self._prefix, *_COMMAND, *arguments],
                env=self._environ,
                input=stdin.encode(),
                capture_output=True,
                timeout=COMMAND_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise FleetFailed(f"`{shown}` took more than {COMMAND_WITHIN_S:.0f} s on {self.node}") from None
        if done.returncode != 0:
            said = redact_text(done.stderr.decode(errors="replace").strip())
            raise FleetFailed(f"`{shown}` failed on {self.node} with status {done.returncode}", hint=said)
        return done.stdout.decode()

    async def start(self, extra: Mapping[str, str] | None = None) -> None:
        """Run the gateway, with these variables besides, and wait until it is ready. Raises FleetFailed."""
        self.launch(extra or {})
        async with self.client() as client:
            await until(f"{self.node} is ready", lambda: self._is_ready(client), READY_WITHIN_S)

    def launch(self, extra: Mapping[str, str]) -> None:
        """Run the gateway, with these variables besides, and wait for nothing."""
        with self._stderr.open("ab") as stderr:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                [*self._prefix, *_COMMAND, "run"],
                env=self._environ | dict(extra),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
            )

    async def _is_ready(self, client: GatewayClient) -> bool:
        self.check()
        return (await client.status()).ready

    def kill(self) -> None:
        """SIGKILL, without a word, and collect what is left of it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_WITHIN_S)
            self._process = None

    @property
    def ended(self) -> int | None:
        """The status with which it ended by itself; None while it runs and when it was stopped from here."""
        return self._process.poll() if self._process is not None else None

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def terminate(self) -> None:
        """Ask it to stop."""
        if self._process is not None:
            self._process.terminate()

    async def stop(self) -> None:
        """Stop it and wait for that; SIGKILL when it takes too long. Returns at once when none runs."""
        self.terminate()
        if not await comes_true(self._has_ended, STOP_WITHIN_S):
            self.kill()
        self._process = None
        self.home.socket.unlink(missing_ok=True)

    async def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def check(self) -> None:
        """Raises FleetFailed when it is not running any more."""
        if self._process is not None and self._process.poll() is not None:
            raise FleetFailed(f"the gateway of {self.node} ended with status {self._process.returncode}")

    def tail(self) -> list[str]:
        """The last lines of its log, and of what it wrote to stderr if it has no log."""
        for path in (self.home.log, self._stderr):
            if path.exists() and path.stat().st_size:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                return [redact_text(line) for line in lines[-LOG_LINES:]]
        return []


def children(pid: int) -> list[int]:
    """Processes that the main thread of one has started, where the kernel tells."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
