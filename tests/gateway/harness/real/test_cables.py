"""Cables between real sockets: they know who dials, and do what they are told to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from gateway.harness.real.cables import CableNetwork
from outbox.ids import NodeId

N1, N2, N3 = (NodeId(f"n{number}") for number in (1, 2, 3))
HELLO = b'{"nodeId":"%s"}'
WITHIN_S = 60.0


class Echo(asyncio.Protocol):
    """Repeats what it hears; ``open`` counts its connections."""

    open = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        Echo.open += 1

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        Echo.open -= 1


@pytest.fixture
async def network() -> AsyncIterator[CableNetwork]:
    """Three nodes, of which n2 repeats what it hears."""
    made = await CableNetwork.open([N1, N2, N3])
    port = int(str(made.settings(N2)["listen.port"]))
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port)
    yield made
    await made.close()
    server.close()
    async with asyncio.timeout(WITHIN_S):
        while Echo.open:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def dialled(network: CableNetwork, who: NodeId) -> AsyncIterator["Line"]:
    endpoints = network.settings(N2)["public.endpoints"]
    assert isinstance(endpoints, list)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(endpoints[0].rpartition(":")[2]))
    line = Line(reader, writer)
    try:
        hello = HELLO % who.encode()
        writer.write(hello)
        assert await line.hears(len(hello)) == hello
        yield line
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    async def hears(self, size: int) -> bytes:
        async with asyncio.timeout(WITHIN_S):
            return await self._reader.readexactly(size)

    async def ends(self) -> bool:
        async with asyncio.timeout(WITHIN_S):
            try:
                return await self._reader.read(1) == b""
            except ConnectionResetError:
                return True


def ways(one: NodeId, other: NodeId) -> Iterator[tuple[NodeId, NodeId]]:
    yield one, other
    yield other, one


@pytest.mark.parametrize("way", list(ways(N1, N2)))
async def test_what_is_blocked_waits_and_comes_later(
    network: CableNetwork, way: tuple[NodeId, NodeId]
) -> None:
    async with dialled(network, N1) as line, dialled(network, N3) as other:
        await network.block(*way)
        line.say(b"one")
        other.say(b"two")
        assert await other.hears(3) == b"two", "others are not concerned"
        hearing = asyncio.ensure_future(line.hears(3))
        assert not (await asyncio.wait({hearing}, timeout=0.1))[0]
        await network.unblock(*way)
        assert await hearing == b"one"


async def test_what_is_blocked_twice_waits_for_both(network: CableNetwork) -> None:
    async with dialled(network, N1) as line:
        for _ in range(2):
            await network.block(N1, N2)
        line.say(b"one")
        hearing = asyncio.ensure_future(line.hears(3))
        await network.unblock(N1, N2)
        assert not (await asyncio.wait({hearing}, timeout=0.1))[0]
        await network.unblock(N1, N2)
        assert await hearing == b"one"


async def test_a_snap_ends_the_connections_of_two_nodes_only(network: CableNetwork) -> None:
    async with dialled(network, N1) as line, dialled(network, N3) as other:
        await network.snap(N1, N2)
        assert await line.ends()
        other.say(b"two")
        assert await other.hears(3) == b"two"
    async with dialled(network, N1):
        pass


async def test_a_slow_link_is_late_in_both_directions(network: CableNetwork) -> None:
    clock = asyncio.get_running_loop()
    async with dialled(network, N1) as line:
        await network.slow(N1, N2, 100)
        asked_at = clock.time()
        line.say(b"one")
        await line.hears(3)
        assert clock.time() - asked_at >= 0.19
        await network.heal()


async def test_healing_lets_everything_pass(network: CableNetwork) -> None:
    async with dialled(network, N1) as line:
        await network.block(N1, N2)
        await network.block(N2, N1)
        line.say(b"one")
        await network.heal()
        assert await line.hears(3) == b"one"
