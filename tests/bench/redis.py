"""The other peer: a Redis server that syncs its append-only file before each answer, and streams.

The client is a few lines of the protocol itself on one pipelined connection, which is the fastest way to use
Redis: whoever waits shares one write and one read with all others. A Python client would be slower.
"""

import asyncio
import shutil
import socket
import subprocess
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

STARTS_WITHIN_S = 20.0


def why_no_redis() -> str:
    """Why it cannot be measured here; empty when it can."""
    return "" if shutil.which("redis-server") else "no redis-server on this machine"


class RedisLine(asyncio.Protocol):
    """One connection; answers come in the order of the commands."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._out: list[bytes] = []
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def command(self, *words: bytes) -> "asyncio.Future[Any]":
        """Send one; what is sent in one turn of the loop goes in one write."""
        loop = asyncio.get_running_loop()
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
        future = loop.create_future()
        self._waiting.append(future)
        return future

    def _flush(self) -> None:
        self._transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        at = 0
        while (read := _value(self._bytes, at)) is not None:
            value, at = read
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(value)
        del self._bytes[:at]


def _value(text: bytearray, at: int) -> tuple[Any, int] | None:
    """One value of RESP2 and where the next begins; None when it is not all there."""
    end = text.find(b"\r\n", at)
    if end < 0:
        return None
    kind, line, after = text[at : at + 1], bytes(text[at + 1 : end]), end + 2
    if kind in b"+-":
        return line, after
    size = int(line)
    if kind == b":" or size < 0:
        return size, after
    if kind == b"$":
        return None if len(text) < after + size + 2 else (bytes(text[after : after + size]), after + size + 2)
    values = []
    for _ in range(size):
        read = _value(text, after)
        if read is None:
            return None
        values.append(read[0])
        after = read[1]
    return values, after


@asynccontextmanager
async def redis_server(folder: Path) -> AsyncIterator[tuple[RedisLine, RedisLine]]:
    """A server with ``appendfsync always``, and two connections to it."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings = ("--appendonly", "yes", "--appendfsync", "always", "--save", "", "--bind", "127.0.0.1")
    process = subprocess.Popen(
        ["redis-server", *settings, "--port", str(port), "--dir", str(folder)], stdout=subprocess.DEVNULL
    )
    try:
        one, other = [await _connected(port) for _ in range(2)]
        yield one, other
    finally:
        process.terminate()
        process.wait(20)


async def _connected(port: int) -> RedisLine:
    async with asyncio.timeout(STARTS_WITHIN_S):
        while True:
            with suppress(OSError):
                _, line = await asyncio.get_running_loop().create_connection(RedisLine, "127.0.0.1", port)
                return line
            await asyncio.sleep(0.05)
