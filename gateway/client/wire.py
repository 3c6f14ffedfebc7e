"""HTTP requests and sockets to one gateway, over its Unix socket or loopback; its refusals as errors."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI

from gateway.api.problem import refusal_of
from gateway.client.limits import (
    CONNECT_WITHIN_S,
    CONNECTIONS_MAX,
    MESSAGE_BYTES_MAX,
    PING_EVERY_S,
    REQUEST_WITHIN_S,
)
from gateway.errors import ConfigError, TimedOut, Unreachable
from gateway.limits import BODY_BYTES_MAX
from outbox.errors import TooLarge

_Record = TypeVar("_Record")

_START = "start it with: gateway run"


class Wire:
    """One gateway's address and a token for it."""

    def __init__(self, *, socket: Path | None, url: str | None, token: str | None) -> None:
        if (socket is None) == (url is None):
            raise ConfigError("a client needs a socket or a URL", hint="one of them, not both")
        self._socket = socket
        self._base = url.rstrip("/") if url is not None else "http://localhost"
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def place(self) -> str:
        """Where the gateway is, for people."""
        return str(self._socket) if self._socket is not None else self._base

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, path: str, record: type[_Record], query: Mapping[str, object | None]) -> _Record:
        """Read something. Raises Denied, Unreachable, TimedOut."""
        return self._decode(await self._request("GET", path, None, query), record)

    async def post(self, path: str, record: type[_Record], body: Mapping[str, object | None]) -> _Record:
        """Do something; None in the body is left out. Raises as ``get``, and TooLarge."""
        return self._decode(await self._request("POST", path, body, {}), record)

    async def patch(self, path: str, record: type[_Record], body: Mapping[str, object | None]) -> _Record:
        """Change something; None in the body is left out. Raises as ``get``, and TooLarge."""
        return self._decode(await self._request("PATCH", path, body, {}), record)

    async def delete(self, path: str) -> None:
        """Take something away. Raises Denied, Unreachable, TimedOut."""
        await self._request("DELETE", path, None, {})

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, *, headers: Mapping[str, str], data: AsyncIterable[bytes] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request whose body, or whose answer's, is streamed; it may take as long as bytes flow.

        Raises Denied, Unreachable, TimedOut.
        """
        patient = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_WITHIN_S, sock_read=REQUEST_WITHIN_S)
        try:
            async with self._http().request(
                method, self._base + path, data=data, headers=headers, timeout=patient
            ) as answer:
                if not answer.ok and method != "HEAD":
                    raise refusal_of(self.place, answer.status, await answer.read())
                yield answer
        except TimeoutError:
            raise TimedOut(f"nothing came for {REQUEST_WITHIN_S:.0f} s from {self.place}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from None

    async def open(self, path: str, query: Mapping[str, str | None]) -> ClientConnection:
        """Open a socket. Raises Denied when it is refused, Unreachable when it may work later."""
        named = {name: value for name, value in query.items() if value is not None}
        uri = f"ws://{urlsplit(self._base).netloc}{path}?{urlencode(named)}"
        dial = (
            partial(unix_connect, str(self._socket), uri)
            if self._socket is not None
            else partial(connect, uri)
        )
        try:
            return await dial(
                additional_headers=self._headers,
                compression=None,
                open_timeout=CONNECT_WITHIN_S,
                ping_interval=PING_EVERY_S,
                ping_timeout=PING_EVERY_S,
                max_size=MESSAGE_BYTES_MAX,
                proxy=None,
            )
        except InvalidStatus as refused:
            raise refusal_of(
                self.place, refused.response.status_code, bytes(refused.response.body or b"")
            ) from None
        except (OSError, TimeoutError, InvalidHandshake, InvalidURI) as error:
            raise self._unreachable(error) from None

    async def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, object | None] | None,
        query: Mapping[str, object | None],
    ) -> bytes:
        content, headers = None, {}
        if body is not None:
            named = {name: value for name, value in body.items() if value is not None}
            content, headers = bounded(msgspec.json.encode(named)), {"Content-Type": "application/json"}
        params = {name: _text(value) for name, value in query.items() if value is not None}
        try:
            async with self._http().request(
                method, self._base + path, data=content, headers=headers, params=params
            ) as answer:
                raw = await answer.read()
        except aiohttp.ConnectionTimeoutError as error:
            raise self._unreachable(error) from None
        except TimeoutError:
            raise TimedOut(f"no answer in {REQUEST_WITHIN_S:.0f} s from {self.place}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from None
        if answer.ok:
            return raw
        raise refusal_of(self.place, answer.status, raw)

    def _http(self) -> aiohttp.ClientSession:
        """The session, made at the first request: it belongs to the event loop that asks."""
        if self._session is None:
            path = self._socket
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.UnixConnector(str(path), limit=CONNECTIONS_MAX) if path else None,
                timeout=aiohttp.ClientTimeout(total=REQUEST_WITHIN_S, sock_connect=CONNECT_WITHIN_S),
                trust_env=False,  # no proxy stands between an agent and its own machine
            )
        return self._session

    def _decode(self, raw: bytes, record: type[_Record]) -> _Record:
        try:
            return msgspec.json.decode(raw, type=record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unreachable(
                f"{self.place} does not answer like a gateway: {error}", hint="is it of another version?"
            ) from None

    def _unreachable(self, error: Exception) -> Unreachable:
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        return Unreachable(f"no gateway answers at {self.place} ({reason})", hint=_START)


def bounded(content: bytes) -> bytes:
    """What the gateway would not read to its end is not sent: its answer might be lost with the rest."""
    if len(content) > BODY_BYTES_MAX:
        raise TooLarge(
            f"a request has at most {BODY_BYTES_MAX} bytes", hint="send it as a blob: gateway send --file"
        )
    return content


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
