"""Headers, bodies and query parameters of a request, read once, at the edge."""

from typing import TypeVar

import msgspec
import structlog
from starlette.requests import HTTPConnection, Request

from gateway.endpoints.bodies import decode
from gateway.endpoints.errors import BadRequest, NotJson
from outbox.traceparent import readable_traceparent

log = structlog.get_logger(__name__)

_Record = TypeVar("_Record")


def host_of(connection: HTTPConnection) -> str:
    """Which server the client means, in lower case. Raises BadRequest: two hosts would be two meanings."""
    named = connection.headers.getlist("host")
    if len(named) != 1:
        raise BadRequest("exactly one Host header is needed")
    return named[0].lower()


def need_json(request: Request) -> None:
    """Raises NotJson: a form of a web page can send any body, but not under this media type."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise NotJson(
            "the body must be JSON and say so", hint="send the header Content-Type: application/json"
        )


async def json_of(request: Request) -> bytes:
    """A JSON body as it came. Raises NotJson; BodyTooLarge while it streams."""
    need_json(request)
    return await request.body()


async def body_of(request: Request, record: type[_Record]) -> _Record:
    """Read a JSON body. Raises NotJson, BadRequest; BodyTooLarge while it streams."""
    return decode(await json_of(request), record)


def traceparent_of(request: Request) -> str | None:
    """The trace that the request belongs to; a header that is none is left aside, and logged.

    Its author may never have seen it: tracing libraries and proxies write it. So it fails no request.
    """
    named = request.headers.getlist("traceparent")
    if not named:
        return None
    found = readable_traceparent(named[0]) if len(named) == 1 else None
    if found is None:
        log.info("request.traceparent_ignored", path=request.url.path, count=len(named))
    return found


def query_of(connection: HTTPConnection, record: type[_Record]) -> _Record:
    """Read the query parameters. Raises BadRequest for an unknown, repeated or wrong one."""
    pairs = connection.query_params.multi_items()
    named = dict(pairs)
    if len(named) != len(pairs):
        raise BadRequest("a query parameter is given twice")
    try:
        return msgspec.convert(named, record, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(f"query: {error}") from None
