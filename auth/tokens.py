"""Bearer tokens of the local listener: ``gwt_`` and 43 characters of base64url.

At rest only their SHA-256 (the token has 256 random bits, so there is nothing to guess or to slow
down).
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from typing import ClassVar

import msgspec

from auth.redacted import Redacted
from auth.scopes import Scope
from outbox import base64url

_TOKEN = re.compile(r"gwt_[A-Za-z0-9_-]{43}", re.ASCII)


class BearerToken(Redacted, frozen=True):
    """A token as it is written to its file and given to one program."""

    shown: ClassVar[tuple[str, ...]] = ()
    text: str


class Holder(msgspec.Struct, frozen=True):
    """Whose token has which hash."""

    token_hash: bytes
    scope: Scope


def make_token(entropy: bytes) -> BearerToken:
    """A token from at least 32 random bytes."""
    assert len(entropy) >= 32
    return BearerToken("gwt_" + base64url.encode(entropy[:32]))


def is_token(text: str) -> bool:
    """Whether a text has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def hash_token(text: str) -> bytes:
    """SHA-256 of a token; any text has one, lone surrogates included (headers are strangers' bytes)."""
    return sha256(text.encode("utf-8", errors="surrogatepass")).digest()


def scope_of_token(text: str, holders: Iterable[Holder]) -> Scope | None:
    """What the bearer of this token may do; None for nobody's. Time does not depend on which one matches."""
    shown, found = hash_token(text), None
    for holder in holders:
        if compare_digest(shown, holder.token_hash):
            found = holder.scope
    return found
