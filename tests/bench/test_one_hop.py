"""One gateway: send, durable, delivered, acknowledged durably; beside one JetStream that syncs each message.

Both agents (publisher and consumer) are in the benchmark's own process on both sides, which take turns in one
run. A JetStream consumer's ACK is not synced; ours is.
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.client.agent import AgentClient
from gateway.client.turns import Turn
from tests.bench.gateways import Node
from tests.bench.jetstream import BODY, jetstream_server, subscription, why_not
from tests.bench.measuring import measure, median
from tests.bench.mesh import CREDIT
from tests.bench.mesh_answerer import TEXT
from tests.bench.raw import raw_limit
from tests.bench.redis import RedisLine, redis_server, why_no_redis
from tests.bench.table import Target, show

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

ROUNDS, SECONDS = 3, 2.0
OF_ALWAYS = {100: Target(5, 15), 1000: Target(5, 15)}
OF_REDIS = Target(0.7, 1.2)
TAKEN_AT_ONCE = b"256"


class Hop:
    """``ask`` ends when the message was delivered, and its turn is being acknowledged."""

    def __init__(self, asker: AgentClient, taker: AgentClient) -> None:
        self._asker, self._taker = asker, taker
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def ask(self) -> None:
        """One message."""
        sent = await self._asker.send(self._taker.name, TEXT)
        await self._future(sent.event_id)
        del self._waiting[sent.event_id]

    async def listen(self) -> None:
        """Take messages and acknowledge them."""
        async with self._taker.turns("bench", credit=CREDIT) as turns, asyncio.TaskGroup() as work:
            async for turn in turns:
                work.create_task(self._done(turn))

    async def _done(self, turn: Turn) -> None:
        await turn.ok()
        self._future(turn.event_id).set_result(None)

    def _future(self, event: str) -> asyncio.Future[None]:
        if event not in self._waiting:
            self._waiting[event] = asyncio.get_running_loop().create_future()
        return self._waiting[event]


@asynccontextmanager
async def mesh_hop(folder: Path) -> AsyncIterator[Hop]:
    """One gateway with two agents."""
    with tempfile.TemporaryDirectory(prefix="gw") as runtime:
        node = Node("vps", folder, Path(runtime))
        node.command("init", "vps", "--port", "0")
        node.start()
        try:
            await node.ready(0)
            async with node.client as client:
                for name in ("asker", "taker"):
                    await client.add_agent(name)
                hop = Hop(client.agent("asker"), client.agent("taker"))
                listening = asyncio.ensure_future(hop.listen())
                await asyncio.wait_for(hop.ask(), 20)
                yield hop
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
        finally:
            node.stop()


class JetStreamHop:
    """The same with one server."""

    def __init__(self, stream: Any, messages: Any) -> None:
        self._stream, self._messages = stream, messages
        self._numbers = itertools.count()
        self._waiting: dict[bytes, asyncio.Future[None]] = {}

    async def ask(self) -> None:
        """One message, stored and delivered; both are waited for."""
        number = b"%012d" % next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        await (await self._stream.publish_async("hop", number + BODY, wait_stall=30))
        await future

    async def listen(self) -> None:
        """Take messages and acknowledge them."""
        async for message in self._messages.messages:
            await message.ack()
            future = self._waiting.pop(message.data[:12], None)
            if future is not None and not future.done():
                future.set_result(None)


@asynccontextmanager
async def jetstream_hop(folder: Path) -> AsyncIterator[JetStreamHop]:
    """One server, one stream, one consumer."""
    from nats.js.api import StorageType, StreamConfig

    async with jetstream_server(folder, always=True) as connection:
        stream = connection.jetstream()
        await stream.add_stream(StreamConfig(name="HOP", subjects=["hop"], storage=StorageType.FILE))
        hop = JetStreamHop(stream, await subscription(stream, "HOP", "hop"))
        listening = asyncio.ensure_future(hop.listen())
        await asyncio.wait_for(hop.ask(), 20)
        yield hop
        listening.cancel()


async def test_one_hop(disk: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    print(f"\nsynchronous=FULL; one fdatasync: {raw_limit(disk, 1).sync_ms:.3f} ms")
    async with mesh_hop(disk) as mesh, jetstream_hop(disk / "nats") as always:
        for in_flight, target in OF_ALWAYS.items():
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(await measure(mesh.ask, in_flight, SECONDS))
                theirs.append(await measure(always.ask, in_flight, SECONDS))
            median(ours).print("mesh", in_flight)
            median(theirs).print("JetStream, sync_interval: always", in_flight)
            show(
                f"one hop at {in_flight}, of JetStream always",
                median(ours).per_s / median(theirs).per_s,
                target,
            )
    print(f"one fdatasync, again: {raw_limit(disk, 1).sync_ms:.3f} ms")


class RedisHop:
    """The same with a stream and a consumer group; the message, and here its ACK too, is synced."""

    def __init__(self, near: RedisLine, far: RedisLine) -> None:
        self._near, self._far = near, far
        self._numbers = itertools.count()
        self._waiting: dict[bytes, asyncio.Future[None]] = {}

    async def ask(self) -> None:
        """One message, stored and delivered; both are waited for."""
        number = b"%012d" % next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._near.command(b"XADD", b"hop", b"*", b"b", number + BODY)
        await future

    async def listen(self) -> None:
        """Take messages and acknowledge them."""
        group = (b"GROUP", b"bench", b"taker", b"COUNT", TAKEN_AT_ONCE, b"BLOCK", b"0")
        while True:
            ((_, messages),) = await self._far.command(b"XREADGROUP", *group, b"STREAMS", b"hop", b">")
            self._near.command(b"XACK", b"hop", b"bench", *(name for name, _ in messages))
            for _, (_, body) in messages:
                self._waiting.pop(body[:12]).set_result(None)


@asynccontextmanager
async def redis_hop(folder: Path) -> AsyncIterator[RedisHop]:
    """One server, one stream, one consumer."""
    async with redis_server(folder) as (near, far):
        await near.command(b"XGROUP", b"CREATE", b"hop", b"bench", b"$", b"MKSTREAM")
        hop = RedisHop(near, far)
        listening = asyncio.ensure_future(hop.listen())
        await asyncio.wait_for(hop.ask(), 20)
        yield hop
        listening.cancel()


async def test_one_hop_beside_redis(disk: Path) -> None:
    if why_no_redis():
        pytest.skip(why_no_redis())
    print(f"\nsynchronous=FULL; one fdatasync: {raw_limit(disk, 1).sync_ms:.3f} ms")
    async with mesh_hop(disk) as mesh, redis_hop(disk / "redis") as redis:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(await measure(mesh.ask, 100, SECONDS))
            theirs.append(await measure(redis.ask, 100, SECONDS))
        median(ours).print("mesh", 100)
        median(theirs).print("Redis Streams, appendfsync always, pipelined", 100)
        ratio = median(ours).per_s / median(theirs).per_s
        show("one hop at 100, of Redis always", ratio, OF_REDIS)
