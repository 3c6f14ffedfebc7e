"""uvicorn, several listeners on one loop: what we want of it, and where its defaults are not ours."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import HomeError
from gateway.limits import PING_EVERY_S
from gateway.serving.crowd import Crowd
from gateway.serving.http_protocol import HttpProtocol, UploadProtocol
from gateway.serving.limits import GRACE_S
from gateway.serving.ws_protocol import WsProtocol
from gateway.wire.limits import FRAME_BYTES_MAX


class Server(uvicorn.Server):
    """One listener. Signals are the gateway's affair."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signal handlers alone: several servers share this process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen. Raises HomeError: uvloop drops a socket that cannot, and says nothing."""
        await super().startup(sockets)
        if not all(listening for server in self.servers for listening in server.sockets):
            raise HomeError("the system does not let this gateway listen", hint="start it again; see the log")

    async def main_loop(self) -> None:
        """Run until cancelled: then open connections are closed in order, within ``GRACE_S``."""
        with contextlib.suppress(asyncio.CancelledError):
            await super().main_loop()


def make_server(app: ASGIApp, *, uploads: bool = False, waiting_max: int | None = None) -> Server:
    """A server for an application, without logs of its own and without proxies' headers.

    ``waiting_max``: how many connections there may be that are no sockets; None: strangers do not come.
    """
    config = uvicorn.Config(
        app,
        http=_protocol(UploadProtocol if uploads else HttpProtocol, waiting_max),
        ws=WsProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws_per_message_deflate=False,
        ws_max_size=FRAME_BYTES_MAX,
        ws_ping_interval=PING_EVERY_S,
        ws_ping_timeout=PING_EVERY_S,
        timeout_graceful_shutdown=int(GRACE_S),
    )
    return Server(config)


def _protocol(kind: type[HttpProtocol], waiting_max: int | None) -> type[HttpProtocol]:
    """A class for each listener: uvicorn makes one for each connection and hands nothing of ours to it."""
    crowd = Crowd[HttpProtocol](waiting_max) if waiting_max is not None else None
    return type(kind.__name__, (kind,), {"crowd": crowd})


class _NoHandshakeNoise(logging.Filter):
    """uvicorn logs an error for each socket refused with an HTTP answer: strangers could flood the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to keep the line."""
        return "without completing handshake" not in record.getMessage()


def quieten() -> None:
    """Drop the server's spurious lines."""
    logging.getLogger("uvicorn.error").addFilter(_NoHandshakeNoise())
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    for noisy in ("websockets", "aiohttp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


async def serve(server: Server, bound: socket.socket) -> None:
    """Serve until cancelled, then say goodbye to whoever is connected."""
    await server.serve(sockets=[bound])
