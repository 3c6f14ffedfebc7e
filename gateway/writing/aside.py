"""The process of the journal as its gateway sees it: started, spoken to, waited for."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from typing import NoReturn, cast

import structlog

from gateway.engine.inputs import Now
from gateway.errors import EngineLost
from gateway.hosting.messages import LENGTH_BYTES, Failed, Opened, decode_reply, error_of, frame
from gateway.hosting.piped import PipedHost
from gateway.limits import WRITER_ENDS_WITHIN_S, WRITER_OPENS_WITHIN_S
from gateway.writing.opening import Opening
from outbox.lock import HomeLock
from stateroom.view import View

log = structlog.get_logger(__name__)

_HINT = "start the gateway again; nothing that was answered is lost"


class Line(asyncio.Protocol):
    """See ``gateway.hosting.piped.Line``: one request at a time over a socketpair."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._bytes = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._lost = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is the loop's."""
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's are no subclasses

    def data_received(self, data: bytes) -> None:
        """A piece of the answer."""
        self._bytes += data
        size = int.from_bytes(self._bytes[:LENGTH_BYTES])
        if len(self._bytes) < LENGTH_BYTES or len(self._bytes) < LENGTH_BYTES + size:
            return
        text = bytes(self._bytes[LENGTH_BYTES:])
        self._bytes.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it came
        """The process is gone, or this gateway closes."""
        if not self._lost.done():
            self._lost.set_result(None)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(_lost())

    async def exchange(self, text: bytes) -> bytes:
        """Raises EngineLost."""
        if self._lost.done() or self._transport is None:
            raise _lost()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame(text))
        return await self._answer

    async def watch(self) -> NoReturn:
        """Raises EngineLost."""
        await asyncio.shield(self._lost)
        raise _lost()

    def close(self) -> None:
        """The process ends by this."""
        if self._transport is not None:
            self._transport.close()


class WriterAside:
    """A running process. Whoever makes one holds the lock of the home, and shares it with the process."""

    def __init__(self, opening: Opening, lock: HomeLock) -> None:
        """Start it, and wait until it has opened the journal.

        Raises as ``Writer``, and EngineLost.
        """
        try:
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._process = _start(theirs, lock)
        except OSError as error:
            raise EngineLost(
                f"the process that writes the journal cannot be started: {error.strerror}", hint=_HINT
            ) from None
        self._line: Line | None = None
        try:
            self._open(opening)
        except BaseException:
            self._socket.close()
            _end(self._process)
            raise

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def _open(self, opening: Opening) -> None:
        self._socket.settimeout(WRITER_OPENS_WITHIN_S)
        try:
            self._socket.sendall(frame(opening.tell()))
            with self._socket.makefile("rb") as answers:
                size = int.from_bytes(answers.read(LENGTH_BYTES))
                text = answers.read(size)
        except TimeoutError:
            raise EngineLost(
                f"the process that writes the journal has not opened it in {WRITER_OPENS_WITHIN_S:.0f} s",
                hint="does the disk of the home answer? does another program hold journal.db?",
            ) from None
        except OSError:
            text = b""
        if not text:
            raise _lost()
        reply = decode_reply(text)
        if isinstance(reply, Failed):
            raise error_of(reply)
        assert isinstance(reply, Opened)
        self.blobs_gone = reply.blobs_gone

    async def host(self, view: View, now: Now) -> PipedHost:
        """Have an engine made; once. Raises StorageFailed, EngineLost."""
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        _, self._line = await loop.create_unix_connection(Line, sock=self._socket)
        return await PipedHost.build(self._line, view, now)

    async def close(self) -> None:
        """End it: it finishes the transaction that it is in."""
        if self._line is not None:
            self._line.close()
        else:
            self._socket.close()
        await asyncio.to_thread(_end, self._process)


def _start(theirs: socket.socket, lock: HomeLock) -> subprocess.Popen[bytes]:
    """With the modules of this very program, wherever it was found."""
    command = [sys.executable, "-P", "-m", "gateway.writing.child", str(theirs.fileno()), str(os.getpid())]
    return subprocess.Popen(  # noqa: S603 - our own program, no shell
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        pass_fds=(theirs.fileno(), lock.fileno()),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its socket is closed: it ends by that, or is ended, unless the kernel holds it in its disk."""
    if _ended(process):
        return
    process.kill()
    if not _ended(process):
        log.error("writer.hangs", pid=process.pid, hint="look at its disk: it holds the home until it ends")


def _ended(process: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(WRITER_ENDS_WITHIN_S)
        return True
    return False


def _lost() -> EngineLost:
    return EngineLost("the process that writes the journal ended by itself", hint=_HINT)
