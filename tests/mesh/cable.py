"""A cable between two gateways that a test can cut: a TCP proxy on loopback."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self


class Cable:
    """Forwards to a port while it is whole; ``cut`` ends what is open and refuses what comes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._whole = True
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.passed = 0
        """Connections that went through."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        self._whole = False
        self._flowing.set()
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._whole = True
        self._flowing.set()

    def freeze(self) -> None:
        """Nothing passes, and nobody is told: both ends are half-open."""
        self._flowing.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self.passed += 1
            ends = {writer, far_writer}
            self._open |= ends
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pump(reader, far_writer))
                    tasks.create_task(self._pump(far_reader, writer))
            finally:
                self._open -= ends

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort() if not self._whole else writer.close()
