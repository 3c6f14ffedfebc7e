"""The bounded queue of frames that wait for one peer."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from stateroom.limits import SEND_QUEUE_BYTES_MAX, SEND_QUEUE_FRAMES_MAX

Send = Callable[[bytes], Awaitable[None]]
"""Sends one binary frame; raises ConnectionError when the peer is gone."""

Recv = Callable[[], Awaitable[bytes | None]]
"""The next binary frame; None (or ConnectionError) when the peer is gone."""


class Closed(msgspec.Struct, frozen=True):
    """Why a connection ended, as a WebSocket close code and a short reason."""

    code: int
    reason: str


GONE = Closed(1000, "peer left")
LOST = Closed(1006, "connection lost")
SLOW = Closed(1013, "too slow: sync again later")
REPLACED = Closed(1008, "too many connections of this peer")
STOPPING = Closed(1001, "going away")


class Outflow:
    """One peer's queue. ``offer`` never waits: a queue above its bounds dooms the connection instead."""

    def __init__(self, *, bytes_max: int = SEND_QUEUE_BYTES_MAX) -> None:
        self.queued_bytes = 0
        self._bytes_max = bytes_max
        self._frames: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._end: Closed | None = None

    def offer(self, frame: bytes) -> None:
        """Queue a frame."""
        if self._end is not None:
            return
        if self.queued_bytes > self._bytes_max or len(self._frames) >= SEND_QUEUE_FRAMES_MAX:
            self.end(SLOW)
            return
        self._frames.append(frame)
        self.queued_bytes += len(frame)
        self._wake.set()

    def end(self, closed: Closed) -> None:
        """Drop what waits and make ``pump`` return."""
        self._end = self._end or closed
        self._frames.clear()
        self.queued_bytes = 0
        self._wake.set()

    async def pump(self, send: Send, timeout_s: float) -> Closed:
        """Send frames until the end; one that takes longer than ``timeout_s`` is the end."""
        while True:
            await self._wake.wait()
            if self._end is not None:
                return self._end
            frame = self._frames.popleft()
            self.queued_bytes -= len(frame)
            if not self._frames:
                self._wake.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await send(frame)
            except TimeoutError:
                return SLOW
            except ConnectionError:
                return LOST
