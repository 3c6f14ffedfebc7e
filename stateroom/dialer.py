"""Keeps one outgoing WebSocket alive for ever.

Each attempt asks for fresh headers (tickets are single-use), opens the socket without proxy and
compression, and hands it to the session; when that ends, for whatever reason of the network, it waits and
dials again. The wait is random below a bound that doubles with each failure (full jitter) and starts anew
after a session that lasted. Pings find a half-open connection within 20 s.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from outbox.errors import MeshError
from outbox.retry import full_jitter
from stateroom.limits import (
    BACKOFF_CAP_S,
    BACKOFF_FIRST_S,
    CLOSE_TIMEOUT_S,
    MESSAGE_BYTES_MAX,
    OPEN_TIMEOUT_S,
    PING_S,
    PONG_S,
    STEADY_S,
)

Headers = Callable[[], Awaitable[Mapping[str, str]]]
"""Headers for one attempt. A MeshError or OSError counts as a failed attempt."""

Session = Callable[[ClientConnection], Awaitable[None]]
"""Uses an open socket until it is done with it."""


class DialState(StrEnum):
    """Where the dialler is."""

    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"


class DialReport(msgspec.Struct, frozen=True):
    """What an operator wants to know about a connection."""

    state: DialState
    failures: int
    """Attempts in a row that came to nothing."""
    last_error: str
    """Why the last attempt or session ended, "" after a clean end."""


class Backoff:
    """The wait before the next attempt; a core: the random fraction is an argument."""

    def __init__(self, first_s: float = BACKOFF_FIRST_S, cap_s: float = BACKOFF_CAP_S) -> None:
        self.first_s = first_s
        """Bound of the wait after the first failure."""
        self._cap_s = cap_s
        self.failures = 0

    def failed(self, fraction: float) -> float:
        """Count a failure; seconds to wait: ``fraction`` (0 to 1) of a bound that doubles up to the cap."""
        self.failures += 1
        return full_jitter(self.failures, fraction, first=self.first_s, cap=self._cap_s)

    def succeeded(self) -> None:
        """Start anew."""
        self.failures = 0


class Dialer:
    """One outgoing connection. ``run`` until cancelled."""

    def __init__(
        self,
        url: str,
        headers: Headers,
        session: Session,
        *,
        fraction: Callable[[], float],
        backoff: Backoff | None = None,
        steady_s: float = STEADY_S,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
        on_state: Callable[[DialReport], None] = lambda _: None,
    ) -> None:
        self.url = url
        self._headers = headers
        self._session = session
        self._fraction = fraction
        self._backoff = backoff or Backoff()
        self._steady_s = steady_s
        self._message_bytes_max = message_bytes_max
        self._on_state = on_state
        self._last_error = ""
        self._state = DialState.IDLE

    @property
    def report(self) -> DialReport:
        """The state of now."""
        return DialReport(self._state, self._backoff.failures, self._last_error)

    def spread(self, first_s: float) -> None:
        """Many dial the same address: let the first wait after a session be random below this."""
        self._backoff.first_s = first_s

    async def run(self) -> None:
        """Dial for ever. Errors of the session that are not the network's propagate."""
        try:
            while True:
                await self._attempt()
                self._enter(DialState.WAITING)
                await asyncio.sleep(self._backoff.failed(self._fraction()))
        finally:
            self._enter(DialState.IDLE)

    async def _attempt(self) -> None:
        self._enter(DialState.CONNECTING)
        loop = asyncio.get_running_loop()
        opened_at = None
        try:
            async with self._connect(await self._headers()) as socket:
                opened_at = loop.time()
                self._last_error = ""
                self._enter(DialState.CONNECTED)
                await self._use(socket)
        except (ConnectionClosed, InvalidHandshake, InvalidURI, OSError, TimeoutError, MeshError) as error:
            self._last_error = describe(error)
        if opened_at is not None and loop.time() - opened_at >= self._steady_s:
            self._backoff.succeeded()

    async def _use(self, socket: ClientConnection) -> None:
        """Run the session in a task of its own.

        A task group that fails leaves its task counted as being cancelled, and may swallow a cancellation
        that comes at that moment. The one would end the dialler at its next timeout (before Python 3.11.3),
        the other would let it dial on although it was to stop.
        """
        session = asyncio.ensure_future(self._session(socket))
        try:
            await asyncio.wait({session})
        finally:
            session.cancel()
            await asyncio.wait({session})
        await session

    def _connect(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[ClientConnection]:
        return connect(
            self.url,
            additional_headers=dict(headers),
            compression=None,
            proxy=None,
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=PING_S,
            ping_timeout=PONG_S,
            max_size=self._message_bytes_max,
            max_queue=16,
            process_exception=lambda error: error,
        )

    def _enter(self, state: DialState) -> None:
        self._state = state
        self._on_state(self.report)


def describe(error: BaseException) -> str:
    """One line about why a connection failed, with the peer's status and reason but none of our headers."""
    match error:
        case InvalidStatus():
            body = bytes(error.response.body or b"")[:200].decode("utf-8", "replace")
            return f"HTTP {error.response.status_code} {body}".strip()
        case ConnectionClosed():
            received = error.rcvd
            return f"closed {received.code} {received.reason}".strip() if received else "connection lost"
        case _:
            return f"{type(error).__name__}: {error}"[:300]
