"""Text frames of the subscribe socket, both ways. Core: bytes in, records out.

==========================================================  ================================================
client to server                                            server to client
==========================================================  ================================================
``{"credit": N}``                                           ``{"deliver": {event, leaseId, leaseMs,``
``{"enqueue": {to, envelope or text}}``                     ``deliveryCount, resumed}}``
``{"ack": id, leaseId?, outcome?, error?}``                 ``{"ok": reqId, …}``
``{"nack": id, leaseId, delayMs?}``                         ``{"error": {code, message, hint?, retryable?,``
``{"reply": id, payload or text, leaseId?, id?, type?,``    ``reqId?}}``
``schema?, traceparent?}``
``{"extend": id, leaseId, leaseMs, etaAt?, planSummary?}``
==========================================================  ================================================

Every client frame may carry ``reqId`` (text or number) and then gets exactly one ``ok`` or ``error`` with it;
without one only errors come back. A message is one frame; on a socket that was opened with ``lines=true``
every message, both ways, is one frame a line (NDJSON). Version 1 since 2026-11.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gateway.api.frames import Delivered, DeliverFrame, ErrorFrame, ErrorRecord, OkFrame, ReqId
from gateway.api.rows import readable
from gateway.endpoints.bodies import (
    ErrorText,
    LeaseText,
    MessageBody,
    Milliseconds,
    check_free_parts,
    decode,
)
from gateway.endpoints.errors import BadRequest
from gateway.endpoints.limits import (
    FRAME_CHARS_MAX,
    MESSAGE_CHARS_MAX,
    SOCKET_CREDIT_MAX,
    SOCKET_MESSAGE_CHARS_MAX,
)
from gateway.engine.effects import Handed
from gateway.engine.limits import EXPIRES_IN_MS_MAX
from gateway.errors import as_told
from outbox.blobref import BlobRef
from outbox.errors import MeshError, TooLarge

_encode = msgspec.json.Encoder().encode


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


class EnqueueFrame(_Frame, frozen=True):
    """A message to any agent of the mesh."""

    enqueue: MessageBody


class ReplyFrame(_Frame, frozen=True):
    """A turn is answered."""

    reply: str
    payload: msgspec.Raw | UnsetType = UNSET
    text: str | None = None
    payload_ref: BlobRef | None = None
    lease_id: LeaseText | None = None
    id: str | None = None
    type: str | None = None
    schema: str | None = None
    traceparent: str | None = None


class ExtendFrame(_Frame, frozen=True):
    """A turn needs more time."""

    extend: str
    lease_id: LeaseText
    lease_ms: Annotated[int, msgspec.Meta(ge=1, le=EXPIRES_IN_MS_MAX)]
    eta_at: str | None = None
    plan_summary: str | None = None


RequestFrame = EnqueueFrame | AckFrame | NackFrame | ReplyFrame | ExtendFrame
ClientFrame = CreditFrame | RequestFrame

_VERBS: dict[str, type[ClientFrame]] = {
    "credit": CreditFrame,
    "enqueue": EnqueueFrame,
    "ack": AckFrame,
    "nack": NackFrame,
    "reply": ReplyFrame,
    "extend": ExtendFrame,
}


_READERS: dict[str, msgspec.json.Decoder[ClientFrame]] = {
    verb: msgspec.json.Decoder(frame) for verb, frame in _VERBS.items()
}
_FIRST_NAME = re.compile(r'\{"([a-z]+)":')
_WITH_FREE_PARTS = (EnqueueFrame, ReplyFrame)


class _Verbs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A first look: which verb, and whose answer it would be."""

    credit: msgspec.Raw | UnsetType = UNSET
    enqueue: msgspec.Raw | UnsetType = UNSET
    ack: msgspec.Raw | UnsetType = UNSET
    nack: msgspec.Raw | UnsetType = UNSET
    reply: msgspec.Raw | UnsetType = UNSET
    extend: msgspec.Raw | UnsetType = UNSET
    req_id: ReqId | None = None


class BadClientFrame(msgspec.Struct, frozen=True):
    """A frame that cannot be done, with the number of the request if it could be read."""

    error: MeshError
    req_id: ReqId | None = None


def frames_of(message: str, *, lines: bool) -> list[str]:
    """The frames of one message: it is one, or with ``lines`` has one a line."""
    if not lines or len(message) > SOCKET_MESSAGE_CHARS_MAX:
        return [message]  # too long for anything: refused as one frame
    return [line for line in message.split("\n") if line]


def read_frame(text: str) -> ClientFrame | BadClientFrame:
    """Read one frame; what is wrong with it is returned, since the socket lives on."""
    if len(text) > FRAME_CHARS_MAX:
        return BadClientFrame(TooLarge(f"a frame has at most {FRAME_CHARS_MAX} characters"))
    first = _FIRST_NAME.match(text)
    if first is None or (reader := _READERS.get(first[1])) is None:
        return _read_slowly(text)
    try:
        raw = text.encode()
        frame = reader.decode(raw)
        if isinstance(frame, _WITH_FREE_PARTS):
            check_free_parts(raw)
    except (msgspec.MsgspecError, BadRequest, UnicodeEncodeError, RecursionError):
        return _read_slowly(text)
    return frame


def _read_slowly(text: str) -> ClientFrame | BadClientFrame:
    """The same for a frame whose verb does not come first, and for one that is wrong: it says how."""
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


def error_record(error: MeshError, req_id: ReqId | None = None) -> ErrorRecord:
    """An error as a client is told."""
    code, retryable = as_told(error)
    return ErrorRecord(code=code, message=str(error), hint=error.hint, retryable=retryable, req_id=req_id)


def error_frame(error: MeshError, req_id: ReqId | None) -> ErrorFrame:
    """The frame of an error."""
    return ErrorFrame(error_record(error, req_id))


def messages_of(frames: Iterable[str], *, lines: bool) -> Iterator[str]:
    """The messages that carry these frames: one each, or with ``lines`` as few as their bound allows."""
    piece: list[str] = []
    chars = 0
    for frame in frames:
        if piece and (not lines or chars + len(frame) > MESSAGE_CHARS_MAX):
            yield "\n".join(piece)
            piece, chars = [], 0
        piece.append(frame)
        chars += len(frame)
    if piece:
        yield "\n".join(piece)


def frame_text(frame: DeliverFrame | ErrorFrame | OkFrame) -> str:
    """A server frame as it goes out."""
    return _encode(frame).decode()
