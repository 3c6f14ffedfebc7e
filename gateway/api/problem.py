"""The problem document (RFC 9457) as the client reads it."""

import msgspec

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """The document's members."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    """The code again, under the name that the joining protocol gives it."""
    code: str
    hint: str
    retryable: bool
