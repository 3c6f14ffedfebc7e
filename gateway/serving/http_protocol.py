"""uvicorn's HTTP protocol with bounds that it lacks: the time a request may take to come, its head, and how
many connections there may be.

Without them a stranger who sends half a request holds a file descriptor for ever, one who sends headers
without end holds memory, and one who connects often holds all descriptors. Strangers reach the peer listener,
so these matter there; there is one protocol for all listeners.
"""

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.serving.crowd import Crowd
from gateway.serving.limits import HEAD_BYTES_MAX, REQUEST_WITHIN_S

_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
)


class HttpProtocol(HttpToolsProtocol):
    """One connection. RFC 9110 sections 15.5.9 and 15.6.4, RFC 6585 section 5 name the refusals."""

    crowd: "Crowd[HttpProtocol] | None" = None
    """Of the listener, where strangers reach it."""
    _timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request has to come in time."""
        super().connection_made(transport)
        self._expect()
        if self.crowd is not None and (gone := self.crowd.come(self, HttpProtocol.is_served)) is not None:
            gone.refuse(_TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._arrived()
        self._leave()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """From now on it is a socket's connection."""
        self._leave()
        super().handle_websocket_upgrade()

    def is_served(self) -> bool:
        """A whole request is here, and its answer is under way."""
        return self._timer is None and not self._is_answered()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head; a piece of the body may be counted with it when both come at once."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES_MAX:
            self.refuse(_TOO_LONG)

    def on_message_begin(self) -> None:
        """A request begins, the first or another on the same connection."""
        super().on_message_begin()
        self._in_head = True
        self._expect()

    def on_headers_complete(self) -> None:
        """The rest is body: whoever reads it bounds it."""
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is here."""
        self._arrived()
        super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body is here."""
        self._progressed()
        super().on_body(body)

    def _progressed(self) -> None:
        """The whole body has to come in time: pieces of it win none."""

    def _expect(self) -> None:
        self._arrived()
        self._timer = self.loop.call_later(REQUEST_WITHIN_S, self.refuse, _TOO_SLOW)

    def _arrived(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        if self.crowd is not None:
            self.crowd.leave(self)

    def _is_answered(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None until the first head is complete
        return cycle is None or cycle.response_complete

    def refuse(self, answer: bytes) -> None:
        """Say why, unless an answer is under way already, and close."""
        self._arrived()
        if self.transport.is_closing():
            return
        if self._is_answered():
            self.transport.write(answer)
        self.transport.close()


class UploadProtocol(HttpProtocol):
    """The same for listeners of this machine, where blobs come in: a body has to make progress, no more."""

    def _progressed(self) -> None:
        """The next piece has to come in time."""
        self._expect()
