"""Base64url without padding (RFC 7515 section 2), strict: one text for one value."""

import base64
import binascii

from stateroom.errors import InvalidRecord


def encode(raw: bytes) -> str:
    """The text of these bytes."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """The bytes of a text that ``encode`` would have made.

    The library ignores junk, padding and stray bits; here they are InvalidRecord.
    """
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise InvalidRecord("base64") from None
    if encode(raw) != text:
        raise InvalidRecord("base64")
    return raw
