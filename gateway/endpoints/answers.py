"""Records as HTTP answers."""

import msgspec
from starlette.responses import Response

from gateway.crashpoint import CrashPoint, crashpoint


def json(record: object, status: int = 200) -> Response:
    """A record as an answer."""
    crashpoint(CrashPoint.ANSWER_BEFORE_SEND)
    return Response(msgspec.json.encode(record), status, media_type="application/json")
