"""A network of TCP cables on loopback, owned by the harness: needs no privileges.

Each gateway publishes the address of its cable, not its own; whoever dials it comes through here. A lane is
one direction between two nodes: it can be blocked (bytes wait, nobody is told) or slow.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Self

from gateway.fleet.ports import free_ports
from gateway.harness.real.dialler import dialler_of
from gateway.harness.real.limits import CHAIN_WAIT_S, DIALLER_BYTES_MAX, PUMP_BYTES
from outbox.ids import NodeId

_Ends = tuple[asyncio.StreamWriter, asyncio.StreamWriter]


class Lane:
    """One direction between two nodes."""

    def __init__(self) -> None:
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.delay_s = 0.0
        self._blocks = 0

    def block(self) -> None:
        """Let what is on it wait."""
        self._blocks += 1
        self.flowing.clear()

    def unblock(self) -> None:
        """One reason less to wait; it flows when none is left."""
        self._blocks -= 1
        if not self._blocks:
            self.flowing.set()

    def heal(self) -> None:
        """As it was at the beginning."""
        self._blocks, self.delay_s = 0, 0.0
        self.flowing.set()


class CableNetwork:
    """One cable for each node; make it with ``open``."""

    def __init__(self, nodes: Sequence[NodeId]) -> None:
        self._ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))
        self._lanes = {(one, other): Lane() for one in nodes for other in nodes if one != other}
        self._open: dict[frozenset[NodeId], set[_Ends]] = {}
        self._servers: dict[NodeId, asyncio.Server] = {}
        self._stranger = Lane()
        """Of connections that have not said who dials."""
        self._serving: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, nodes: Sequence[NodeId]) -> Self:
        """Listen for every node."""
        network = cls(nodes)
        for node in nodes:

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: NodeId = node
            ) -> None:
                await network._serve(node, reader, writer)

            network._servers[node] = await asyncio.start_server(serve, "127.0.0.1", 0)
        return network

    def settings(self, node: NodeId) -> Mapping[str, object]:
        """It listens on a port of its own and publishes its cable's."""
        port = self._servers[node].sockets[0].getsockname()[1]
        return {"listen.port": self._ports[node], "public.endpoints": [f"http://127.0.0.1:{port}"]}

    def prefix(self, node: NodeId) -> Sequence[str]:  # noqa: ARG002 - the same for all
        """Nothing: all of them are ordinary processes."""
        return ()

    async def block(self, source: NodeId, target: NodeId) -> None:
        """Let what goes from one to the other wait."""
        self._lanes[source, target].block()

    async def unblock(self, source: NodeId, target: NodeId) -> None:
        """Let it go on, unless it was blocked twice."""
        self._lanes[source, target].unblock()

    async def snap(self, one: NodeId, other: NodeId) -> None:
        """Abort the connections between two nodes."""
        for ends in list(self._open.get(frozenset((one, other)), ())):
            for end in ends:
                end.transport.abort()

    async def slow(self, one: NodeId, other: NodeId, delay_ms: int) -> None:
        """Let each chunk wait so long."""
        for lane in (self._lanes[one, other], self._lanes[other, one]):
            lane.delay_s = delay_ms / 1000

    async def heal(self) -> None:
        """All lanes as they were at the beginning."""
        for lane in self._lanes.values():
            lane.heal()

    async def close(self) -> None:
        """Abort everything."""
        await self.heal()
        for ends in [ends for known in self._open.values() for ends in known]:
            for end in ends:
                end.transport.abort()
        for server in self._servers.values():
            server.close()
        if self._serving:
            await asyncio.wait(self._serving, timeout=CHAIN_WAIT_S)

    async def _serve(
        self, target: NodeId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            await self._carry(target, reader, writer)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _carry(
        self, target: NodeId, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        start, source = await _first_words(reader)
        there = self._lanes.get((source, target), self._stranger) if source else self._stranger
        back = self._lanes.get((target, source), self._stranger) if source else self._stranger
        await there.flowing.wait()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._ports[target])
        known = self._open.setdefault(frozenset((source or target, target)), set())
        known.add(ends := (writer, far_writer))
        try:
            far_writer.write(start)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, far_writer, there))
                tasks.create_task(_pump(far_reader, writer, back))
        finally:
            known.discard(ends)
            far_writer.transport.abort()


async def _first_words(reader: asyncio.StreamReader) -> tuple[bytes, NodeId | None]:
    """What the dialler says first, up to where it names itself."""
    start, source = b"", None
    async with asyncio.timeout(CHAIN_WAIT_S):
        while source is None and len(start) < DIALLER_BYTES_MAX:
            data = await reader.read(PUMP_BYTES)
            start += data
            source = dialler_of(start)
            if not data:
                break
    return start, source


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lane: Lane) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(PUMP_BYTES):
            if lane.delay_s:
                await asyncio.sleep(lane.delay_s)
            await lane.flowing.wait()
            writer.write(data)
            await writer.drain()
    await lane.flowing.wait()  # a partition hides the end of a connection as well
    writer.close()
