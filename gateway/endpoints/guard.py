"""Who may speak to the local listener at all: checked before any route, on HTTP and WebSocket alike.

In order: one Host header that names this listener (a rebound DNS name does not), no page of another site
(Origin, Sec-Fetch-Site; there is no CORS), a bearer token, and a body that is cut off at its limit while it
streams.
"""

from typing import cast

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.scopes import AsAgent
from auth.scopes import Scope as Principal
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.errors import (
    BodyTooLarge,
    ForeignOrigin,
    MethodRefused,
    Misdirected,
    RequestError,
    Unauthorized,
)
from gateway.endpoints.problems import response_of
from gateway.endpoints.reading import host_of
from gateway.engine.revoked import check_speaks
from gateway.limits import BODY_BYTES_MAX
from outbox.errors import NodeRevoked
from outbox.limits import BLOB_BYTES_MAX

OPEN_PATHS = frozenset({"/livez", "/readyz"})
"""Health probes carry no token and tell nothing but health."""

BLOB_PATH = "/v1/blobs"

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PRINCIPAL = "gateway.principal"


def principal_of(connection: HTTPConnection) -> Principal:
    """Who asks, as the guard found out."""
    return cast("Principal", connection.scope[_PRINCIPAL])


class Guard:
    """ASGI middleware of one listener. ``trusted_socket``: the Unix socket, which only its owner can open."""

    def __init__(self, app: ASGIApp, desk: LocalDesk, *, trusted_socket: bool) -> None:
        self._app = app
        self._desk = desk
        self._trusted_socket = trusted_socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection on, or answer it with the reason why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            self._check(connection)
        except (RequestError, NodeRevoked) as error:
            await response_of(error)(scope, receive, send)
            return
        await self._app(scope, _bounded(receive, _body_max(connection)), send)

    def _check(self, connection: HTTPConnection) -> None:
        _check_host(connection, self._hosts(connection))
        _check_site(connection, self._hosts(connection))
        if connection.url.path not in OPEN_PATHS:
            principal = self._desk.authenticate(_bearer(connection), trusted_socket=self._trusted_socket)
            if principal is None:
                raise Unauthorized
            if isinstance(principal, AsAgent):
                check_speaks(self._desk.runtime.view, self._desk.identity.node)
            connection.scope[_PRINCIPAL] = principal
        _check_length(connection)

    def _hosts(self, connection: HTTPConnection) -> frozenset[str]:
        """The names of the listener: it is asked for its real port, which no request can change."""
        server = connection.scope.get("server")
        if self._trusted_socket or server is None or server[1] is None:
            return frozenset({"localhost"})
        return frozenset(f"{name}:{server[1]}" for name in _LOOPBACK)


def _check_host(connection: HTTPConnection, hosts: frozenset[str]) -> None:
    if host_of(connection) not in hosts:
        raise Misdirected("this server does not answer to that name", hint="use 127.0.0.1 or localhost")


def _check_site(connection: HTTPConnection, hosts: frozenset[str]) -> None:
    own = {f"http://{host}" for host in hosts}
    if any(origin not in own for origin in connection.headers.getlist("origin")):
        raise ForeignOrigin("requests of other sites are refused")
    if any(site not in {"same-origin", "none"} for site in connection.headers.getlist("sec-fetch-site")):
        raise ForeignOrigin("requests of other sites are refused")
    if connection.scope.get("method") == "OPTIONS":
        raise MethodRefused("there is no CORS here")


def _bearer(connection: HTTPConnection) -> str | None:
    named = connection.headers.getlist("authorization")
    if not named:
        return None
    scheme, _, token = named[0].partition(" ")
    if len(named) != 1 or scheme.lower() != "bearer" or not token:
        raise Unauthorized
    return token


def _check_length(connection: HTTPConnection) -> None:
    length = connection.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > _body_max(connection):
        raise _too_large()


def _body_max(connection: HTTPConnection) -> int:
    """Blobs are streamed to the disk; every other body is held in memory."""
    is_blob = connection.url.path.startswith(BLOB_PATH) and connection.scope.get("method") in {"PUT", "POST"}
    return BLOB_BYTES_MAX if is_blob else BODY_BYTES_MAX


def _bounded(receive: Receive, bytes_max: int) -> Receive:
    """The same stream, which ends in an error once it is longer than a body may be."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > bytes_max:
                raise _too_large()
        return message

    return bounded


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(
        f"a body has at most {BODY_BYTES_MAX} bytes", hint="send it as a blob: gateway send --file"
    )
