"""What uvicorn does not bound: requests that never end. Real sockets, a real server, short limits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect

from gateway.serving import http_protocol
from gateway.serving.servers import make_server, serve
from gateway.serving.sockets import listen_tcp

WITHIN_S = 0.1


async def _echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
async def port() -> AsyncIterator[int]:
    bound = listen_tcp("127.0.0.1", 0)
    app = Starlette(routes=[Route("/", _echo, methods=["POST"])])
    running = asyncio.create_task(serve(make_server(app), bound))
    yield int(bound.getsockname()[1])
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    bound.close()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on requests have little time: what must be answered well is asked before."""
    return lambda: monkeypatch.setattr(http_protocol, "REQUEST_WITHIN_S", WITHIN_S)


async def talk(port: int, *pieces: bytes) -> bytes:
    """Everything that comes back until the server closes."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                with contextlib.suppress(OSError):
                    await writer.drain()
            with contextlib.suppress(ConnectionResetError):
                return await reader.read()
            return b""
        finally:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"POS",
        b"POST / HTTP/1.1\r\nHost: x\r\nX-A: b",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    ],
)
async def test_a_request_that_does_not_end_is_let_go(
    port: int, hurry: Callable[[], None], piece: bytes
) -> None:
    hurry()
    answer = await talk(port, piece)
    # With half a body the application waits already: it cannot be answered twice.
    assert answer.startswith(b"HTTP/1.1 408") or (b"Content-Length: 10" in piece and answer == b"")


async def test_a_second_request_on_the_connection_has_its_own_time(
    port: int, hurry: Callable[[], None]
) -> None:
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert await reader.readexactly(1) == b"3"
        hurry()
        writer.write(b"POST / HT")
        assert (await reader.read()).startswith(b"HTTP/1.1 408")
        writer.close()
        await writer.wait_closed()


async def test_a_head_without_end_is_refused_while_it_comes(port: int) -> None:
    lines = (b"X-%d: " % number + b"a" * 1000 + b"\r\n" for number in range(500))
    answer = await talk(port, b"POST / HTTP/1.1\r\nHost: x\r\n", *lines)
    assert answer.startswith(b"HTTP/1.1 431") or answer == b""
    answer = await talk(port, b"POST / HTTP/1.1\r\nHost: x\r\nX: ", *([b"a" * 8192] * 20))
    assert answer.startswith(b"HTTP/1.1 431") or answer == b""


async def test_a_long_body_is_no_head(port: int) -> None:
    body = b"b" * 300_000
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    answer = await talk(port, head + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"300000")


@pytest.fixture
async def crowded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A listener at which three connections may wait; nobody is let go for being slow."""
    monkeypatch.setattr(http_protocol, "REQUEST_WITHIN_S", 60.0)
    bound = listen_tcp("127.0.0.1", 0)

    async def stay(socket: WebSocket) -> None:
        await socket.accept()
        await socket.receive()

    routes = [Route("/", _echo, methods=["POST"]), WebSocketRoute("/socket", stay)]
    running = asyncio.create_task(serve(make_server(Starlette(routes=routes), waiting_max=3), bound))
    yield int(bound.getsockname()[1])
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    bound.close()


async def test_idle_connections_cannot_keep_others_out(crowded: int) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", crowded) for _ in range(20)]
    whole = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"
    answer = await talk(crowded, whole)
    assert answer.startswith(b"HTTP/1.1 200")
    async with asyncio.timeout(10):
        first = await idle[0][0].read()
    assert first.startswith(b"HTTP/1.1 503")
    for _, writer in idle:
        writer.transport.abort()


async def test_sockets_that_were_let_in_are_not_counted_and_stay(crowded: int) -> None:
    async with contextlib.AsyncExitStack() as stack:
        url = f"ws://127.0.0.1:{crowded}/socket"
        sockets = [await stack.enter_async_context(connect(url, proxy=None)) for _ in range(8)]
        answer = await talk(
            crowded, b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 200")
        for socket in sockets:
            await (await socket.ping())
