"""What an event says of a blob: content that is too large for a payload, named by its SHA-256.

Source: ``payloadRef`` in the envelope table of ``docs/PROTOCOL.md``.
"""

import re
from typing import NewType

import msgspec

from outbox.errors import InvalidEvent, InvalidId
from outbox.limits import BLOB_BYTES_MAX, MEDIA_TYPE_MAX

BlobId = NewType("BlobId", str)
"""SHA-256 of the content: 64 lower-case hex digits."""

OCTETS = "application/octet-stream"
"""The media type of what nobody has named (RFC 2046 section 4.5.1)."""

_BLOB = re.compile(r"[0-9a-f]{64}", re.ASCII)
_WORD = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_MEDIA = re.compile(rf"{_WORD}/{_WORD}(?: *; *{_WORD}=(?:{_WORD}|\"[^\"\\\x00-\x1f]*\"))*", re.ASCII)
_MARK = b'"payloadRef"'


class BlobRef(msgspec.Struct, frozen=True, rename="camel"):
    """A blob as an event names it."""

    sha256: BlobId
    bytes: int
    content_type: str = OCTETS


def blob_id(text: str) -> BlobId:
    """Check the name of a blob. Raises InvalidId."""
    if not _BLOB.fullmatch(text):
        raise InvalidId("blob", text)
    return BlobId(text)


def check_ref(ref: BlobRef) -> None:
    """Raises InvalidEvent, InvalidId."""
    blob_id(ref.sha256)
    if not 0 <= ref.bytes <= BLOB_BYTES_MAX:
        raise InvalidEvent(f"a blob has 0 to {BLOB_BYTES_MAX} bytes")
    if len(ref.content_type) > MEDIA_TYPE_MAX or not _MEDIA.fullmatch(ref.content_type):
        raise InvalidEvent(f"{ref.content_type[:80]!r} is no media type")


class _Naming(msgspec.Struct, frozen=True, rename="camel"):
    payload_ref: BlobRef | None = None


_naming = msgspec.json.Decoder(_Naming)


def blob_of(body: bytes) -> BlobRef | None:
    """The blob that an event's bytes name; None for none, and for what no reader would take for an event."""
    if _MARK not in body:
        return None  # of nearly all events, and found out by one search
    try:
        ref = _naming.decode(body).payload_ref
        if ref is not None:
            check_ref(ref)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidEvent, InvalidId):
        return None
    return ref


def named_blob(body: bytes) -> BlobId | None:
    """Its name."""
    ref = blob_of(body)
    return None if ref is None else ref.sha256
