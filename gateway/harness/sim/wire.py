"""One connection between two simulated processes; each end looks like a ``websockets`` connection."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
from websockets.frames import Close

from gateway.harness.sim.loop import SimLoop
from gateway.wire.frames import VERSION

_UNDER_WAY_MAX = 256 * 1024
"""Bytes that the two kernels would buffer: a sender waits beyond them."""


class Party(Protocol):
    """A process that can be reached."""

    name: str
    loop: SimLoop

    def accept(self, channel: str, peer: str, end: "WireEnd") -> None:
        """A connection came in; runs in the party's own loop."""
        ...


class Carrier(Protocol):
    """The network, as a connection needs it."""

    tap: Callable[["WireEnd", bytes], None]
    heard: Callable[["WireEnd", bytes], None]
    alter: Callable[["WireEnd", bytes], bytes]

    def carry(self, end: "WireEnd", arrive: Callable[[], None], size: int) -> None:
        """Take one message from an end to the other, or break the connection."""
        ...

    def send(self, end: "WireEnd", arrive: Callable[[], None], *, size: int) -> None:
        """Let something arrive at the far end, after all that set out before it."""
        ...

    def drop(self, wire: "Wire") -> None:
        """Break a connection."""
        ...


class Wire:
    """A connection and its two ends: the dialler's and the listener's."""

    def __init__(self, network: Carrier, number: int, channel: str, caller: Party, listener: Party) -> None:
        self.network = network
        self.number = number
        self.channel = channel
        self.ends = near, far = WireEnd(self, caller), WireEnd(self, listener)
        near.other, far.other = far, near
        self.names = near.direction = (caller.name, listener.name)
        far.direction = (listener.name, caller.name)
        self.version = VERSION
        """Of the frames that are spoken, on a link."""


class WireEnd:
    """What one process holds of a connection."""

    def __init__(self, wire: Wire, owner: Party) -> None:
        self.wire = wire
        self.owner = owner
        self.other: WireEnd
        """The far end."""
        self.direction: tuple[str, str]
        """Who says something here, and to whom."""
        self.last_due_us = 0
        self._inbox: deque[bytes] = deque()
        self._under_way = 0
        self._closed: Close | None = None
        self._lost = False
        self._stirred: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None

    # --- as a ``ClientConnection``

    async def send(self, message: bytes) -> None:
        """Returns when the kernel has taken it. Raises ConnectionClosed."""
        self._check_open()
        self.wire.network.tap(self, message)
        message = self.wire.network.alter(self, message)
        self._under_way += len(message)
        self.wire.network.carry(self, lambda: self.other.arrive(message), len(message))
        while self._under_way > _UNDER_WAY_MAX:
            self._drained = self._drained or self.owner.loop.create_future()
            await self._drained
            self._check_open()

    async def recv(self) -> bytes:
        """The next message. Raises ConnectionClosed."""
        while not self._inbox:
            self._check_open()
            self._stirred = self.owner.loop.create_future()
            await self._stirred
        message = self._inbox.popleft()
        self.wire.network.heard(self, message)
        return message

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say so and be done; again is fine."""
        if self._closed is None and not self._lost:
            close = Close(code, reason)
            self._closed = close
            self._stir()
            if not self.owner.loop.dead:
                self.wire.network.send(self, lambda: self.other.hang_up(close), size=0)

    def refused(self, code: int) -> str:
        """What the far side has said, if it has closed with this code."""
        return self._closed.reason if self._closed is not None and self._closed.code == code else ""

    # --- what comes from the network, in the loop of the owner

    def arrive(self, message: bytes) -> None:
        """A message is here."""
        if self._closed is None and not self._lost:
            self._inbox.append(message)
            if self._stirred is not None:
                _wake(self._stirred)
                self._stirred = None
        self.other.taken(len(message))

    def taken(self, size: int) -> None:
        """So much has arrived."""
        self._under_way -= size
        if self._drained is not None and self._under_way <= _UNDER_WAY_MAX:
            _wake(self._drained)
            self._drained = None

    def hang_up(self, close: Close) -> None:
        """The far side has closed."""
        self._closed = self._closed or close
        self.wire.network.drop(self.wire)
        self._stir()

    def break_off(self) -> None:
        """The connection is broken."""
        self._lost = self._lost or self._closed is None
        self._stir()

    # --- inside

    def _check_open(self) -> None:
        if self._lost or self.owner.loop.dead:
            raise ConnectionClosedError(None, None)
        if self._closed is not None:
            ended: Any = ConnectionClosedOK if self._closed.code == 1000 else ConnectionClosedError
            raise ended(self._closed, None)

    def _stir(self) -> None:
        for future in (self._stirred, self._drained):
            if future is not None:
                _wake(future)
        self._stirred = self._drained = None


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
