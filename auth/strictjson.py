"""JSON that every reader understands alike: what two parsers could read differently is refused.

Refused: duplicate keys, fractions and exponents (no message of this protocol has them), NaN and Infinity,
integers beyond 2^53, byte order marks, anything but UTF-8, lone surrogates, depth, size, unknown fields and
wrong types. A text must pass the standard library's parser (which can see duplicates) and msgspec's (which
knows the types).
"""

import json
import re
from typing import NoReturn, TypeVar

import msgspec

from auth.errors import InvalidRequest, RequestTooLarge
from auth.limits import JSON_DEPTH_MAX, JSON_INT_MAX

_Record = TypeVar("_Record")

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""One that has no end goes to the end of the text; nothing is given back, and looked at twice."""


def decode(raw: bytes, record: type[_Record], *, bytes_max: int) -> _Record:
    """Read one typed record. Raises InvalidRequest, RequestTooLarge; never anything else."""
    if len(raw) > bytes_max:
        raise RequestTooLarge(f"more than {bytes_max} bytes")
    try:
        text = raw.decode("utf-8", errors="strict")
        _check_depth(text)
        _PARSER.decode(text)
        return msgspec.json.decode(raw, type=record)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise InvalidRequest("not the JSON that was expected") from None


def _check_depth(text: str) -> None:
    # Before parsing: a recursive parser must never see a depth that it cannot leave.
    depth = 0
    for char in _STRING.sub("", text):
        if char in "[{":
            depth += 1
            if depth > JSON_DEPTH_MAX:
                raise ValueError
        elif char in "]}":
            depth -= 1


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _refuse(_text: str) -> NoReturn:
    raise ValueError


def _small_int(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > JSON_INT_MAX:
        raise ValueError
    return value


_PARSER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_refuse, parse_constant=_refuse, parse_int=_small_int
)
