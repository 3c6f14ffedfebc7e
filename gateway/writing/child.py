"""The process of the journal: ``python -m gateway.writing.child SOCKET PARENT``, started by its gateway.

It owns the database, and with its gateway the lock of the home (an open file that both have: the home is
locked until neither is there). It never outlives its gateway by more than the transaction that it is in:
Linux kills it when its parent dies, and everywhere the end of the socket ends it. Signals from a terminal are
its parent's to answer.
"""

import ctypes
import os
import signal
import socket
import sys

from gateway.clock import Clock
from gateway.engine.inputs import Now
from gateway.hosting.messages import LENGTH_BYTES, Opened, encode, failure, frame
from gateway.hosting.serving import Serving
from gateway.hosting.ticking import Ticking
from gateway.writing.opening import Opening
from gateway.writing.writer import Writer, collect_seldom
from outbox.errors import MeshError
from stateroom.view import View

_PR_SET_PDEATHSIG = 1


class _Closed(Exception):
    """The gateway is gone."""


class Pipe:
    """Frames over a socket, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def receive(self) -> bytes:
        """The next frame. Raises _Closed."""
        return self._exactly(int.from_bytes(self._exactly(LENGTH_BYTES)))

    def send(self, text: bytes) -> None:
        """Raises _Closed."""
        try:
            self._connection.sendall(frame(text))
        except OSError:
            raise _Closed from None

    def _exactly(self, size: int) -> bytes:
        """Both a reset and an end of the socket are the end of the gateway."""
        got = bytearray(size)
        rest = memoryview(got)
        while rest:
            try:
                count = self._connection.recv_into(rest)
            except OSError:
                raise _Closed from None
            if not count:
                raise _Closed
            rest = rest[count:]
        return bytes(got)


def main() -> None:
    """Serve one gateway until it is gone."""
    descriptor, parent = map(int, sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _die_with(parent)
    pipe = Pipe(socket.socket(fileno=descriptor))
    try:
        _serve(pipe)
    except _Closed:
        return


def _serve(pipe: Pipe) -> None:
    clock = Clock()
    try:
        writer = Writer(Opening.told(pipe.receive()), clock)
    except MeshError as error:
        pipe.send(encode(failure(error, None)))
        return
    try:
        pipe.send(encode(Opened(writer.blobs_gone)))
        serving = Serving(lambda view, now: _ticking(writer, view, now))
        while True:
            pipe.send(serving.answer(pipe.receive()))
    finally:
        writer.close()


def _ticking(writer: Writer, view: View, now: Now) -> Ticking:
    ticking = writer.ticking(view, now)
    collect_seldom()
    return ticking


def _die_with(parent: int) -> None:
    """Be killed when the parent dies; one that is dead already is found out by its place being taken."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


if __name__ == "__main__":
    main()
