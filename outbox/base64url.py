"""Base64url without padding, one text for one value (RFC 4648 section 5, RFC 7515 appendix C).

The standard library's decoder skips junk and takes several texts for the same bytes; a text that is compared,
hashed or signed must not have siblings, so only the text that encoding gives back is accepted.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


def encode(raw: bytes) -> str:
    """The text of some bytes."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """The bytes of a text. Raises ValueError for padding, junk, and unused bits that are set."""
    if not _ALPHABET.fullmatch(text) or len(text) % 4 == 1:
        raise ValueError("not base64url")
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(raw) != text:
        raise ValueError("not canonical base64url")
    return raw
