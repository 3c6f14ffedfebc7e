"""Problem documents: every refusal over HTTP, from any error of the mesh (RFC 9457).

``code`` is the stable code of the error trees, ``hint`` tells what to do, ``retryable`` whether the same
request may succeed later. The status follows from the code alone, by one table.
"""

from collections.abc import Awaitable, Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.problem import MEDIA_TYPE, Problem
from gateway.endpoints.errors import BadRequest, MethodRefused, NoRoute
from gateway.endpoints.limits import RETRY_AFTER_S
from gateway.errors import Denied, as_told
from outbox.errors import CallerError, MeshError, PeerError

STATUS: dict[str, int] = {
    "expired_ticket": 401,
    "expired_token": 401,
    "invalid_ticket": 401,
    "invalid_token": 401,
    "unauthorized": 401,
    "forbidden": 403,
    "foreign_origin": 403,
    "node_mismatch": 403,
    "node_revoked": 403,
    "room_forbidden": 403,
    "no_route": 404,
    "not_found": 404,
    "unknown_recipient": 404,
    "unknown_stream": 404,
    "method_not_allowed": 405,
    "ambiguous_event": 409,
    "conflict": 409,
    "idempotency_conflict": 409,
    "name_taken": 409,
    "replay_detected": 409,
    "ticket_already_used": 409,
    "token_already_used": 409,
    "cursor_below_floor": 410,
    "too_large": 413,
    "unsupported_media_type": 415,
    "range_not_satisfiable": 416,
    "misdirected": 421,
    "blob_wrong": 422,
    "hop_limit": 422,
    "busy": 429,
    "loop_limit": 429,
    "rate_limited": 429,
    "internal": 500,
    "storage_full": 507,
}
"""Codes that are not 400 (the caller's fault) or 503 (the world's)."""


def problem_of(error: MeshError) -> Problem:
    """The document of an error."""
    code, retryable = as_told(error)
    status = STATUS.get(code, 400 if isinstance(error, CallerError | PeerError) else 503)
    return Problem(
        type=f"urn:gateway-mesh:problem:{code}",
        title=code.replace("_", " "),
        status=status,
        detail=str(error),
        error=code,
        code=code,
        hint=error.hint,
        retryable=retryable,
        revocations=error.words if isinstance(error, Denied) else (),
    )


def response_of(error: MeshError) -> Response:
    """The HTTP answer of an error, never cached; the connection closes when a body may be left unread."""
    problem = problem_of(error)
    headers = {"Cache-Control": "no-store"}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status == 429:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    if problem.status in {413, 507}:
        headers["Connection"] = "close"
    return Response(msgspec.json.encode(problem), problem.status, headers, MEDIA_TYPE)


async def refuse(_request: Request, error: Exception) -> Response:
    """Starlette's handler for errors of the mesh, on HTTP and before a socket is accepted."""
    assert isinstance(error, MeshError)
    return response_of(error)


def refusing_routes(hint: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    """The same for what the router refuses; ``hint`` says what a listener is for, to who asks it for more."""

    async def refuse_route(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            return response_of(MethodRefused("the path does not take this method"))
        return response_of(NoRoute("nothing is served at this path", hint=hint))

    return refuse_route


async def hung_up(_request: Request, _error: Exception) -> Response:
    """The caller went away in the middle of its body: nobody reads the answer, and it is no bug of ours."""
    return response_of(BadRequest("the body was cut short"))


async def fail(_request: Request, _error: Exception) -> Response:
    """The answer to a bug of ours, which the server logs."""
    return response_of(MeshError("the request could not be handled", hint="see the gateway's log"))
