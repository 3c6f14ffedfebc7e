"""When a socket stops reading: at messages that nobody takes. Real sockets, a real server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect

from gateway.serving.servers import make_server, serve
from gateway.serving.sockets import listen_tcp
from gateway.serving.ws_protocol import WsProtocol

SIZE = 512 * 1024
"""More than comes in one read, so that no two messages do."""


@asynccontextmanager
async def serving(talk: Callable[[WebSocket], Awaitable[None]]) -> AsyncIterator[str]:
    """A server whose sockets do this once they are open."""

    async def route(socket: WebSocket) -> None:
        await socket.accept()
        await talk(socket)

    bound = listen_tcp("127.0.0.1", 0)
    running = asyncio.create_task(serve(make_server(Starlette(routes=[WebSocketRoute("/", route)])), bound))
    try:
        yield f"ws://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        bound.close()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages waited each time a socket of the server stopped or had stopped."""
    seen: list[int] = []
    step = WsProtocol.send_receive_event_to_app

    def watched(self: WsProtocol) -> None:
        step(self)
        if self.read_paused:
            seen.append(self.queue.qsize())

    monkeypatch.setattr(WsProtocol, "send_receive_event_to_app", watched)
    return seen


async def test_nobody_takes_anything(pauses: list[int]) -> None:
    go = asyncio.Event()
    got: list[int] = []

    async def talk(socket: WebSocket) -> None:
        await go.wait()
        while len(got) < 20:
            got.append(len(await socket.receive_bytes()))

    async with asyncio.timeout(30), serving(talk) as address, connect(address) as socket:
        sending = asyncio.ensure_future(_send(socket.send, 20))
        while not pauses:
            await asyncio.sleep(0)
        assert not sending.done()
        assert pauses == [2]
        go.set()
        await sending
        await socket.wait_closed()
    assert got == [SIZE] * 20
    assert max(pauses) == 2


async def test_each_is_taken_at_once(pauses: list[int]) -> None:
    async def talk(socket: WebSocket) -> None:
        for _ in range(20):
            await socket.send_bytes(await socket.receive_bytes())

    async with asyncio.timeout(30), serving(talk) as address, connect(address) as socket:
        for number in range(20):
            await socket.send(bytes([number]))
            assert await socket.recv() == bytes([number])
    assert pauses == []


async def _send(send: Callable[[bytes], Awaitable[None]], count: int) -> None:
    for _ in range(count):
        await send(bytes(SIZE))
