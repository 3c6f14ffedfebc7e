"""The peer listener: joining, renewing, the state room and the pipe. Nothing else is served here.

Before a socket opens, its ticket is spent and the transaction committed; a refusal is an HTTP answer with its
code, before 101. Not one byte of Yjs goes to anybody without a ticket.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from auth.errors import AuthError, KeyRevoked
from auth.gatekeeper import Gatekeeper
from auth.keys import PublicKey
from auth.limits import BODY_BYTES_MAX, ENTROPY_BYTES
from auth.messages import (
    CHALLENGE_PATH,
    EXCHANGE_PATH,
    PROOF_HEADER,
    RENEW_PATH,
    TICKET_SCHEME,
    read_proof_header,
    read_ticket_header,
)
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.door import PIPE_ROOM, check_member
from gateway.endpoints.errors import BadRequest, BodyTooLarge, ForeignOrigin, Misdirected
from gateway.endpoints.outcasts import explained
from gateway.endpoints.problems import fail, hung_up, problem_of, refusing_routes, response_of
from gateway.endpoints.reading import host_of, need_json
from gateway.endpoints.turn_sockets import REVOKED
from gateway.engine.effects import Admitted, Ticketed
from gateway.engine.knocks import Exchange, Renew, Upgrade
from gateway.errors import Denied
from gateway.links.errors import SocketClosed
from gateway.links.link import Link
from gateway.links.local import Local
from gateway.links.peering import PATHS
from gateway.links.registry import Registry
from gateway.links.socket import AcceptedSocket, Socket
from gateway.rooms import Rooms
from outbox.errors import MeshError
from stateroom.outflow import LOST, Recv, Send
from stateroom.room import Room

log = structlog.get_logger(__name__)

_CLOSE_INTERNAL = 1011
_FOR_GATEWAYS = "gateways meet here; agents ask the Unix socket of their own gateway, or its local.port"


@dataclass(frozen=True, slots=True)
class PeerDesk:
    """The gateway as its peer listener sees it."""

    local: Local
    gatekeeper: Gatekeeper
    rooms: Rooms
    registry: Registry
    hosts: frozenset[str]
    """The names (``host:port``) by which peers know this gateway; a request for another one is not for us."""


def peer_app(desk: PeerDesk) -> Starlette:
    """The ASGI application of the peer listener."""
    door = _Endpoints(desk)
    posts = {CHALLENGE_PATH: door.challenge, EXCHANGE_PATH: door.exchange, RENEW_PATH: door.renew}
    routes: list[Route | WebSocketRoute] = [
        Route(path, _no_store(handler), methods=["POST"]) for path, handler in posts.items()
    ]
    routes += [WebSocketRoute(path, door.socket_for(room)) for room, path in PATHS.items()]
    app = Starlette(
        routes=routes,
        exception_handlers={
            MeshError: _refuse,
            HTTPException: refusing_routes(_FOR_GATEWAYS),
            ClientDisconnect: hung_up,
            Exception: fail,
        },
    )
    app.router.redirect_slashes = False
    return app


class _Endpoints:
    def __init__(self, desk: PeerDesk) -> None:
        self._desk = desk
        self._runtime = desk.local.runtime

    async def challenge(self, request: Request) -> Response:
        body, entropy = await self._body(request), self._desk.local.clock.entropy(ENTROPY_BYTES)
        answer = self._desk.gatekeeper.challenge(body, self._runtime.wall_ms(), entropy, _client(request))
        return _json(msgspec.json.encode(answer))

    async def exchange(self, request: Request) -> Response:
        body = await self._body(request)
        answer = await self._knock(EXCHANGE_PATH, Exchange(self._runtime.req(), body, _client(request)))
        crashpoint(CrashPoint.EXCHANGE_AFTER_COMMIT)
        return _json(answer.body)

    async def _body(self, request: Request) -> bytes:
        """The whole body, read no further than its limit. Raises RequestError branches."""
        _check_site(request, self._desk.hosts)
        need_json(request)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                raise BodyTooLarge(f"a body has at most {BODY_BYTES_MAX} bytes")
        return body

    async def renew(self, request: Request) -> Response:
        body = await self._body(request)
        answer = await self._knock(RENEW_PATH, Renew(self._runtime.req(), body, _client(request)))
        return _json(answer.body)

    async def _knock(self, path: str, knock: Exchange | Renew) -> Ticketed:
        """Raises Denied; who was put out is told by whom and why."""
        try:
            answer = await self._runtime.ask(knock)
        except Denied as refusal:
            here = self._desk.local.identity.node
            raise explained(refusal, path, knock.body, here, self._desk.rooms) from None
        assert isinstance(answer, Ticketed)
        return answer

    def socket_for(self, room: str) -> Callable[[WebSocket], Awaitable[None]]:
        """The handler of one channel's upgrades."""

        async def handle(websocket: WebSocket) -> None:
            _check_site(websocket, self._desk.hosts)
            admitted = await self._admit(websocket, room)
            await websocket.accept()
            await self._serve(AcceptedSocket(websocket), admitted)

        return handle

    async def _admit(self, websocket: WebSocket, room: str) -> Admitted:
        if websocket.url.query:
            raise BadRequest("a socket takes no query", hint="the ticket goes into the Authorization header")
        ticket = read_ticket_header(websocket.headers.getlist("authorization"))
        proof = read_proof_header(websocket.headers.getlist(PROOF_HEADER))
        path, req = PATHS[room], self._runtime.req()
        admitted = await self._runtime.ask(Upgrade(req, ticket, proof, path, room, _client(websocket)))
        assert isinstance(admitted, Admitted)
        crashpoint(CrashPoint.UPGRADE_AFTER_COMMIT)
        if admitted.new_member:
            self._publish(admitted)
        else:
            check_member(self._desk.rooms.view(), admitted)
        log.info("peer.admitted", peer=admitted.node, room=room, new_member=admitted.new_member)
        return admitted

    def _publish(self, admitted: Admitted) -> None:
        for member in self._desk.gatekeeper.members():
            if member.node == admitted.node:
                self._desk.rooms.say_member(member)

    async def _serve(self, socket: AcceptedSocket, admitted: Admitted) -> None:
        registry, peer, room = self._desk.registry, admitted.node, self._desk.rooms.named(admitted.room)
        if self._desk.rooms.view().revoked(peer) is not None:  # since the ticket was spent
            await socket.close(REVOKED, KeyRevoked.code)
            return
        registry.opened(peer, admitted.room)
        try:
            if room is not None:
                await _serve_room(room, socket, peer)
            else:
                assert admitted.room == PIPE_ROOM
                verify = PublicKey.from_bytes(admitted.public_key).verify
                await registry.run_link(Link(self._desk.local, peer, verify, socket, dialled=False))
        finally:
            registry.closed(peer, admitted.room)


async def _serve_room(room: Room, socket: Socket, peer: str) -> None:
    send, recv = _room_ends(socket)
    closed = await room.serve(send, recv, peer=peer)
    await socket.close(_CLOSE_INTERNAL if closed is LOST else closed.code, closed.reason)


def _room_ends(socket: Socket) -> tuple[Send, Recv]:
    async def send(frame: bytes) -> None:
        try:
            await socket.send(frame)
        except SocketClosed as error:
            raise ConnectionError(str(error)) from None

    async def recv() -> bytes | None:
        try:
            return await socket.receive()
        except SocketClosed:
            return None

    return send, recv


def _check_site(connection: HTTPConnection, hosts: frozenset[str]) -> None:
    """Gateways are no web pages, and answer to their own names only."""
    if host_of(connection) not in hosts:
        raise Misdirected(
            "this gateway does not answer to that name", hint="name it in public.endpoints of its settings"
        )
    if "origin" in connection.headers or "sec-fetch-site" in connection.headers:
        raise ForeignOrigin("web pages cannot talk to a gateway")


def _client(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else "unknown"


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _no_store(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def uncached(request: Request) -> Response:
        response = await handler(request)
        response.headers["Cache-Control"] = "no-store"
        return response

    return uncached


async def _refuse(connection: Request, error: Exception) -> Response:
    """On a socket a refusal is the answer instead of 101."""
    assert isinstance(error, MeshError)
    if isinstance(error, AuthError | Denied):
        log.info("peer.refused", code=problem_of(error).code, client=_client(connection))
    response = response_of(error)
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = TICKET_SCHEME
    return response
