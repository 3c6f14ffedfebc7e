"""A network of network namespaces: each gateway has an interface and an address of its own. Linux, root.

::

    namespace gwPID-n1   eth0 10.213.0.1 ── veth ──┐
    namespace gwPID-n2   eth0 10.213.0.2 ── veth ──┤ hub0 (bridge), in namespace gwPID-hub
    namespace gwPID-n3   eth0 10.213.0.3 ── veth ──┘

Nothing of it touches the machine's own network. Neighbours are written down by hand: what is blocked goes to
a hardware address that nobody has, so packets vanish in one direction and no process is told.
"""

import asyncio
import contextlib
import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from gateway.fleet.errors import FleetFailed
from gateway.harness.real.limits import IP_WITHIN_S, LINK_DOWN_S, NS_PORT
from outbox.ids import NodeId

_HUB = "hub"
_NOBODY = "02:00:00:00:ff:ff"


class NamespaceNetwork:
    """One namespace a node and one for the bridge between them; make it with ``open``."""

    def __init__(self, nodes: Sequence[NodeId]) -> None:
        self._numbers = {node: number for number, node in enumerate(nodes, 1)}
        self._blocked: Counter[tuple[NodeId, NodeId]] = Counter()
        """How often each way was blocked."""
        self._late: dict[tuple[NodeId, NodeId], int] = {}
        self._made: list[str] = []

    @classmethod
    async def open(cls, nodes: Sequence[NodeId]) -> Self:
        """Make all of it; what is left of runs whose process is gone is taken away. Raises FleetFailed."""
        await asyncio.to_thread(_sweep)
        network = cls(nodes)
        try:
            await asyncio.to_thread(network._build)
        except BaseException:
            network._remove()
            raise
        return network

    def settings(self, node: NodeId) -> Mapping[str, object]:
        """It listens on an address of its own, without TLS: the network is inside this machine."""
        host = self._address(node)
        return {
            "listen.host": host,
            "listen.port": NS_PORT,
            "listen.allow_plain": True,
            "public.endpoints": [f"http://{host}:{NS_PORT}"],
        }

    def prefix(self, node: NodeId) -> Sequence[str]:
        """Runs a command in the node's namespace."""
        return ("ip", "netns", "exec", _namespace(node))

    async def block(self, source: NodeId, target: NodeId) -> None:
        """What goes from one to the other is lost on the way."""
        self._blocked[source, target] += 1
        await asyncio.to_thread(self._point, source, target, _NOBODY)

    async def unblock(self, source: NodeId, target: NodeId) -> None:
        """It arrives again, unless it was blocked twice; TCP repeats what was lost."""
        self._blocked[source, target] -= 1
        if not self._blocked[source, target]:
            await asyncio.to_thread(self._point, source, target, self._hardware(target))

    async def snap(self, one: NodeId, other: NodeId) -> None:
        """Abort the connections between two nodes; the cable of the first is out for a moment."""
        cable = ("-n", _namespace(_HUB), "link", "set", f"to-{one}")
        try:
            await asyncio.to_thread(_ip, *cable, "down")
            await asyncio.to_thread(_kill_sockets, one, self._address(other))
            await asyncio.to_thread(_kill_sockets, other, self._address(one))
            await asyncio.sleep(LINK_DOWN_S)
        finally:
            await asyncio.to_thread(_ip, *cable, "up")

    async def slow(self, one: NodeId, other: NodeId, delay_ms: int) -> None:
        """Delay what the two send; what they send to others as well: a queue serves a whole interface."""
        self._late[one, other] = delay_ms
        for node in (one, other):
            late_ms = max(late for pair, late in self._late.items() if node in pair)
            await asyncio.to_thread(self._delay, node, late_ms)

    async def heal(self) -> None:
        """All ways as they were at the beginning."""
        for source, target in +self._blocked:
            await asyncio.to_thread(self._point, source, target, self._hardware(target))
        self._blocked.clear()
        for one, other in [pair for pair, late in self._late.items() if late]:
            await self.slow(one, other, 0)

    async def close(self) -> None:
        """Take the namespaces away, and with them whatever is in them."""
        await asyncio.to_thread(self._remove)

    def _build(self) -> None:
        self._add_namespace(_HUB)
        hub = _namespace(_HUB)
        _ip("-n", hub, "link", "add", "hub0", "type", "bridge")
        _ip("-n", hub, "link", "set", "hub0", "up")
        for node in self._numbers:
            self._add_namespace(node)
            self._plug(node, hub)
        for source in self._numbers:
            for target in self._numbers:
                if source != target:
                    self._point(source, target, self._hardware(target))

    def _add_namespace(self, name: str) -> None:
        self._made.append(_namespace(name))
        _ip("netns", "add", _namespace(name))

    def _plug(self, node: NodeId, hub: str) -> None:
        own, cable = _namespace(node), f"to-{node}"
        _ip("-n", hub, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", own)
        _ip("-n", hub, "link", "set", cable, "master", "hub0", "up")
        _ip("-n", own, "link", "set", "lo", "up")
        _ip("-n", own, "link", "set", "eth0", "address", self._hardware(node), "up")
        _ip("-n", own, "addr", "add", f"{self._address(node)}/24", "dev", "eth0")

    def _point(self, source: NodeId, target: NodeId, hardware: str) -> None:
        entry = (self._address(target), "lladdr", hardware, "dev", "eth0", "nud", "permanent")
        _ip("-n", _namespace(source), "neigh", "replace", *entry)

    def _delay(self, node: NodeId, delay_ms: int) -> None:
        on = ("dev", "eth0", "root")
        if delay_ms:
            _tc(_namespace(node), "qdisc", "replace", *on, "netem", "delay", f"{delay_ms}ms")
        else:
            _tc(_namespace(node), "qdisc", "delete", *on)

    def _address(self, node: NodeId) -> str:
        return f"10.213.0.{self._numbers[node]}"

    def _hardware(self, node: NodeId) -> str:
        return f"02:00:00:00:00:{self._numbers[node]:02x}"

    def _remove(self) -> None:
        for name in self._made:
            with contextlib.suppress(FleetFailed):  # it was not made, or somebody was faster
                _ip("netns", "delete", name)
        self._made.clear()


def _namespace(name: str) -> str:
    return f"gw{os.getpid()}-{name}"


def _sweep() -> None:
    """Namespaces of runs that were killed before they could clean up."""
    for line in _ip("netns", "list").splitlines():
        name = line.split(" ")[0]
        pid, _, rest = name.removeprefix("gw").partition("-")
        if name.startswith("gw") and rest and pid.isdecimal() and not _lives(int(pid)):
            _ip("netns", "delete", name)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kill_sockets(node: NodeId, address: str) -> None:
    """As a middlebox would that forgot the connections. Where ``ss`` is missing, only the cable was out."""
    with contextlib.suppress(FleetFailed):
        _ip("netns", "exec", _namespace(node), "ss", "-K", "dst", address)


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _tc(namespace: str, *arguments: str) -> str:
    return _run("ip", "netns", "exec", namespace, "tc", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, timeout=IP_WITHIN_S, check=False)  # noqa: S603
    if done.returncode != 0:
        raise FleetFailed(f"`{' '.join(command)}` failed", hint=done.stderr.decode(errors="replace")[:300])
    return done.stdout.decode()
