"""Byte ranges of HTTP, as far as blobs need them: one range of a download, one part of an upload.

Source: RFC 9110 sections 14.1.2 (Range), 14.4 (Content-Range) and 14.5 (partial PUT). Core.
"""

import re
from typing import NamedTuple

from gateway.endpoints.errors import BadRange, BadRequest

_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.ASCII)
_CONTENT = re.compile(r"bytes (?:\*|([0-9]{1,18})-([0-9]{1,18}))/([0-9]{1,18})", re.ASCII)


class Stretch(NamedTuple):
    """Bytes from ``first`` to before ``end``."""

    first: int
    end: int


class Part(NamedTuple):
    """What an upload brings of how much."""

    first: int
    end: int
    total: int


def range_of(header: str | None, size: int) -> Stretch | None:
    """The stretch that a download asks for; None: all of it. What is not understood is ignored (RFC 9110).

    Raises BadRange when nothing of it is there.
    """
    match = _RANGE.fullmatch(header) if header is not None else None
    if match is None:
        return None
    if match[3] is not None:
        found = Stretch(max(0, size - int(match[3])), size)
    else:
        found = Stretch(int(match[1]), min(size, int(match[2]) + 1 if match[2] else size))
        if match[2] and int(match[2]) < int(match[1]):
            return None
    if found.first >= found.end:
        raise BadRange(size)
    return found


def part_of(header: str | None) -> Part | None:
    """What an upload says that it brings; None when it says nothing. Raises BadRequest.

    ``*`` brings no more: all bytes are there, and their sender waits for the answer.
    """
    if header is None:
        return None
    match = _CONTENT.fullmatch(header)
    if match is not None and match[1] is None:
        total = int(match[3])
        return Part(total, total, total)
    if match is None or not int(match[1]) <= int(match[2]) < int(match[3]):
        raise BadRequest("Content-Range is bytes FIRST-LAST/TOTAL, or bytes */TOTAL without a body")
    return Part(int(match[1]), int(match[2]) + 1, int(match[3]))
