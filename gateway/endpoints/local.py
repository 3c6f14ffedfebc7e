"""The local listener: one app for the Unix socket and for loopback TCP.

============================  =========  ======  ====================================================
path                          method     who     answers
============================  =========  ======  ====================================================
``/v1/enqueue``               POST       agent   202 ``{eventId, threadId, to, duplicate}``
``/v1/reply``                 POST       agent   202, the same
``/v1/ack``, ``/v1/nack``     POST       agent   ``{eventId, duplicate}``
``/v1/extend``                POST       agent   ``{eventId, leaseMs}``
``/v1/subscribe``             WebSocket  agent   turns; frames in ``gateway.endpoints.frames``
``/v1/watch``                 WebSocket  agent   ``{item}`` for each newly accepted event
``/v1/blobs``                 GET        admin   ``{blobs, bytes, missing}``
``/v1/blobs``                 POST       agent   201 ``{sha256, bytes}``
``/v1/blobs/{sha256}``        PUT        agent   201 ``{sha256, bytes}``, or 202 with ``Upload-Offset``
``/v1/blobs/{sha256}``        GET, HEAD  agent   the bytes, or those of ``Range``
``/v1/inbox``                 GET        agent   ``{items, more}``
``/v1/trace/{event}``         GET        agent   the event's steps
``/v1/deliveries``            GET        agent   rows
``/v1/dead``                  GET        agent   rows
``/v1/status``                GET        agent   the node
``/v1/nodes``, ``/v1/agents`` GET        agent   rows
``/v1/agents``                POST       admin   201 ``{name, tokenFile}``
``/v1/agents/{name}``         DELETE     admin   ``{name}``
``/v1/invites``               GET        admin   rows
``/v1/invites``               POST       admin   201 ``{inviteId, joinCode, expiresAt}``
``/v1/invites/{id}``          DELETE     admin   204
``/v1/incidents``             GET        admin   rows
``/v1/incidents``             POST       agent   202 told
``/v1/outbox``                GET        admin   ``{entries, next, head}``
``/v1/doubts/end``            POST       admin   ``{nodes}``
``/livez``, ``/readyz``       GET        anyone  200, or 503
============================  =========  ======  ====================================================

JSON in camelCase; refusals are problem documents (``gateway.endpoints.problems``). "agent" means: the agent
of the token, or an admin who names one. Version 1 since 2026-11.
"""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from gateway.endpoints.blobs import BlobRoutes
from gateway.endpoints.dead import DeadRoutes
from gateway.endpoints.desk import LocalDesk
from gateway.endpoints.doubts import DoubtRoutes
from gateway.endpoints.guard import Guard
from gateway.endpoints.inbox import InboxRoute
from gateway.endpoints.journal import JournalRoutes
from gateway.endpoints.mesh import MeshRoutes
from gateway.endpoints.messages import MessageRoutes
from gateway.endpoints.operator import OperatorRoutes
from gateway.endpoints.problems import fail, hung_up, refuse, refusing_routes
from gateway.endpoints.subscribe import SubscribeRoute
from gateway.endpoints.watch import WatchRoute
from outbox.errors import MeshError

_ROUTES = "routes begin with /v1/; docs/LOCAL_API.md lists them"


def local_app(desk: LocalDesk, *, trusted_socket: bool = False) -> Starlette:
    """The app of one listener.

    ``trusted_socket`` only for the Unix socket (0600 in a directory of 0700): whoever can open it is the
    owner of the home, and without a token the admin. Whoever bound the socket says so; no request can.
    """
    parts = (
        MessageRoutes(desk),
        BlobRoutes(desk),
        SubscribeRoute(desk),
        WatchRoute(desk),
        InboxRoute(desk),
        JournalRoutes(desk),
        DeadRoutes(desk),
        DoubtRoutes(desk),
        MeshRoutes(desk),
        OperatorRoutes(desk),
    )
    app = Starlette(
        routes=[route for part in parts for route in part.routes()],
        middleware=[Middleware(Guard, desk=desk, trusted_socket=trusted_socket)],
        exception_handlers={
            MeshError: refuse,
            HTTPException: refusing_routes(_ROUTES),
            ClientDisconnect: hung_up,
            Exception: fail,
        },
    )
    app.router.redirect_slashes = False
    return app
