"""The peer listener: joining, renewing, the state room and the pipe. Nothing else is served here.

Before a socket opens its ticket is spent and the transaction committed; a refusal is an HTTP answer with its
code, before 101. Not one byte of Yjs goes to anybody without a ticket.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

import msgspec
from auth.errors import AuthError, NodeMismatch
from auth.gatekeeper import Gatekeeper
from auth.keys import PublicKey
from auth.limits import BODY_BYTES_MAX, ENTROPY_BYTES
from auth.members import Member
from auth.messages import (
    CHALLENGE_PATH,
    EXCHANGE_PATH,
    PROOF_HEADER,
    RENEW_PATH,
    read_proof_header,
    read_ticket_header,
)
from gateway.clock import Clock
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.door import PIPE_ROOM
from gateway.endpoints.errors import BadRequest, BodyTooLarge, ForeignOrigin, NotJson
from gateway.endpoints.problems import refuse, refuse_route, response_of
from gateway.engine.effects import Admitted, Ticketed
from gateway.engine.inputs import Exchange, Renew, Upgrade
from gateway.links.link import Link, Local
from gateway.links.peering import PATHS
from gateway.links.registry import Registry
from gateway.links.socket import AcceptedSocket, SocketClosed
from gateway.rooms import Rooms
from outbox.errors import MeshError
from outbox.ids import NodeId
from starlette.exceptions import HTTPException

log = structlog.get_logger(__name__)

NO_STORE = {"Cache-Control": "no-store"}
