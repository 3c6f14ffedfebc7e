"""Records as HTTP answers."""

import msgspec
from starlette.responses import Response

from gateway.api.answers import Recipient, SentAnswer
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.effects import Sent


def json(record: object, status: int = 200) -> Response:
    """A record as an answer."""
    crashpoint(CrashPoint.ANSWER_BEFORE_SEND)
    return Response(msgspec.json.encode(record), status, media_type="application/json")


def sent_answer(sent: Sent) -> SentAnswer:
    """What the caller of a send or reply is told."""
    to = Recipient(sent.agent, sent.node)
    return SentAnswer(sent.event_id, sent.thread_id, to, sent.duplicate, sent.nodes)
