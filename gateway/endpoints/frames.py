"""Text frames of the subscribe socket, both ways. Core: bytes in, records out.

==========================================================  ================================================
client to server                                            server to client
==========================================================  ================================================
``{"credit": N}``                                           ``{"deliver": {event, leaseId, leaseMs,``
``{"ack": id, leaseId?, outcome?, error?}``                 ``deliveryCount, resumed}}``
``{"nack": id, leaseId, delayMs?}``                         ``{"ok": reqId, …}``
``{"reply": id, payload or text, leaseId?, id?, type?}``    ``{"error": {code, message, hint, reqId?}}``
``{"extend": id, leaseId, leaseMs}``
==========================================================  ================================================

Every client frame may carry ``reqId`` (text or number) and then gets exactly one ``ok`` or ``error`` with it;
without one only errors come back. Version 1 since 2026-11.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gateway.api.frames import Delivered, DeliverFrame, ErrorFrame, ErrorRecord, OkFrame, ReqId
from gateway.api.rows import readable
from gateway.endpoints.bodies import ErrorText, LeaseText, Milliseconds, decode
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.limits import FRAME_CHARS_MAX, SOCKET_CREDIT_MAX
from gateway.engine.effects import Handed
from gateway.engine.limits import EXPIRES_IN_MS_MAX
from gateway.errors import Denied
from outbox.errors import MeshError, TooLarge


class _Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    req_id: ReqId | None = None


class CreditFrame(_Frame, frozen=True):
    """The socket can take so many more turns."""

    credit: Annotated[int, msgspec.Meta(ge=1, le=SOCKET_CREDIT_MAX)]


class AckFrame(_Frame, frozen=True):
    """A turn is done."""

    ack: str
    lease_id: LeaseText | None = None
    outcome: Literal["ok", "failed"] = "ok"
    error: ErrorText | None = None


class NackFrame(_Frame, frozen=True):
    """A turn is given back."""

    nack: str
    lease_id: LeaseText
    delay_ms: Milliseconds = 0


class ReplyFrame(_Frame, frozen=True):
    """A turn is answered."""

    reply: str
    payload: msgspec.Raw | UnsetType = UNSET
    text: str | None = None
    lease_id: LeaseText | None = None
    id: str | None = None
    type: str | None = None


class ExtendFrame(_Frame, frozen=True):
    """A turn needs more time."""

    extend: str
    lease_id: LeaseText
    lease_ms: Annotated[int, msgspec.Meta(ge=1, le=EXPIRES_IN_MS_MAX)]


ClientFrame = CreditFrame | AckFrame | NackFrame | ReplyFrame | ExtendFrame

_VERBS: dict[str, type[ClientFrame]] = {
    "credit": CreditFrame,
    "ack": AckFrame,
    "nack": NackFrame,
    "reply": ReplyFrame,
    "extend": ExtendFrame,
}


class _Verbs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A first look: which verb, and whose answer it would be."""

    credit: msgspec.Raw | UnsetType = UNSET
    ack: msgspec.Raw | UnsetType = UNSET
    nack: msgspec.Raw | UnsetType = UNSET
    reply: msgspec.Raw | UnsetType = UNSET
    extend: msgspec.Raw | UnsetType = UNSET
    req_id: ReqId | None = None


class BadClientFrame(msgspec.Struct, frozen=True):
    """A frame that cannot be done, with the number of the request if it could be read."""

    error: MeshError
    req_id: ReqId | None = None


def read_frame(text: str) -> ClientFrame | BadClientFrame:
    """Read one frame; what is wrong with it is returned, since the socket lives on."""
    if len(text) > FRAME_CHARS_MAX:
        return BadClientFrame(TooLarge(f"a frame has at most {FRAME_CHARS_MAX} characters"))
    try:
        raw = text.encode()
        verbs = decode(raw, _Verbs)
    except (BadRequest, UnicodeEncodeError) as error:
        return BadClientFrame(BadRequest(str(error)))
    named = [verb for verb in _VERBS if getattr(verbs, verb) is not UNSET]
    if len(named) != 1:
        return BadClientFrame(BadRequest(f"a frame has exactly one of {', '.join(_VERBS)}"), verbs.req_id)
    try:
        return msgspec.json.decode(raw, type=_VERBS[named[0]])
    except msgspec.ValidationError as error:
        return BadClientFrame(BadRequest(f"{named[0]}: {error}"), verbs.req_id)


def deliver_text(turn: Handed) -> str:
    """The frame of a turn; the event's bytes go through as they came."""
    delivered = Delivered(
        event=msgspec.Raw(readable(turn.body).encode()),
        lease_id=turn.lease_id,
        lease_ms=turn.lease_ms,
        delivery_count=turn.delivery_count,
        resumed=turn.resumed,
    )
    return frame_text(DeliverFrame(delivered))


def error_frame(error: MeshError, req_id: ReqId | None) -> ErrorFrame:
    """The frame of an error."""
    code = error.wire_code if isinstance(error, Denied) else error.code
    return ErrorFrame(ErrorRecord(code=code, message=str(error), hint=error.hint, req_id=req_id))


def frame_text(frame: DeliverFrame | ErrorFrame | OkFrame) -> str:
    """A server frame as it goes out."""
    return msgspec.json.encode(frame).decode()
