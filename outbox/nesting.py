"""How deep JSON is nested, from its bytes, without a parser.

A parser that calls itself gives up at a depth that depends on who calls it: what is read in one place cannot
be read in another. So what comes from outside is measured before it is taken.
"""

import re

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""One that has no end goes to the end of the text; nothing is given back, and looked at twice."""

_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_deeper(raw: bytes, depth_max: int) -> bool:
    """Whether a document is nested deeper; of what is none, whether a parser might come deeper.

    Takes a level at a time away, from the inside: each is one pass over the brackets.
    """
    if raw.count(b"{") + raw.count(b"[") <= depth_max:
        return False  # too few brackets to be deep, wherever they stand
    left = _STRING.sub(b"", raw).translate(_ALIKE, _NO_BRACKETS)
    for _ in range(depth_max):
        fewer = left.replace(b"[]", b"")
        if len(fewer) == len(left):
            return left.count(b"[") > depth_max  # empty, or no document
        left = fewer
    return bool(left)
