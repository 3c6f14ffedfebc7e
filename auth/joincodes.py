"""The join code: everything a new machine needs, as one word to copy.

``ansj1_`` and base64url of ``checksum ‖ JSON``. The checksum, 6 bytes of SHA-256, finds typing errors and cut
lines; it protects nothing. What protects is ``jkt``: the joiner sends the token only to a server that has
proved to hold that key.

======  ==========================================================
``v``   1
``u``   URLs of the issuer, best first, at most 4
``k``   thumbprint (``jkt``) of the gateway's node key
``m``   mesh id
``n``   the node name that the invite expects; absent when any
``e``   expiry, milliseconds since 1970 (for display: the issuer's clock decides)
``t``   the invite token
======  ==========================================================

Version 1 since 2026-11.
"""

import re
from hashlib import sha256
from typing import ClassVar, Literal

import msgspec

from auth import strictjson
from auth.addresses import check_gateway_url
from auth.errors import AuthError, BadJoinCode
from auth.invites import InviteToken, read_invite_token
from auth.keys import Jkt
from auth.limits import JOIN_CODE_CHARS_MAX, JOIN_URLS_MAX
from auth.redacted import Redacted
from outbox import base64url
from outbox.errors import InvalidId
from outbox.ids import MeshId, NodeId, node_id

_PREFIX = "ansj1_"
_OTHER_VERSION = re.compile(r"ansj[0-9]+_", re.ASCII)
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_CHECKSUM_BYTES = 6
_COPY_IT_ALL = "copy the whole code that `gateway invite` printed"


class JoinCode(Redacted, frozen=True, kw_only=True):
    """A join code that was read and checked."""

    shown: ClassVar[tuple[str, ...]] = ("urls", "gateway_jkt", "mesh", "expected_node", "expires_at_ms")
    urls: tuple[str, ...]
    gateway_jkt: Jkt
    mesh: MeshId
    expected_node: NodeId | None = None
    expires_at_ms: int
    token: InviteToken


class _Wire(Redacted, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    # "v" has no default: a reader of another version must see it.
    v: Literal[1]
    u: tuple[str, ...]
    k: str
    m: str
    n: str | None = None
    e: int
    t: str


def encode_join_code(code: JoinCode) -> str:
    """The word to copy."""
    wire = _Wire(
        v=1,
        u=code.urls,
        k=code.gateway_jkt,
        m=code.mesh,
        n=code.expected_node,
        e=code.expires_at_ms,
        t=code.token.text,
    )
    raw = msgspec.json.encode(wire)
    return _PREFIX + base64url.encode(_checksum(raw) + raw)


def decode_join_code(text: str, *, allow_plain: bool = False) -> JoinCode:
    """Read a join code; white space around it is forgiven. Raises BadJoinCode.

    ``allow_plain`` lets plain http addresses of other machines pass.
    """
    raw = _unwrap(text.strip())
    try:
        wire = strictjson.decode(raw, _Wire, bytes_max=JOIN_CODE_CHARS_MAX)
        token = read_invite_token(wire.t)
        expected = node_id(wire.n) if wire.n is not None else None
    except (AuthError, InvalidId):
        raise BadJoinCode("the join code is of another version or not one at all") from None
    if (
        not 1 <= len(wire.u) <= JOIN_URLS_MAX
        or not _THUMBPRINT.fullmatch(wire.k)
        or not _THUMBPRINT.fullmatch(wire.m)
    ):
        raise BadJoinCode("the join code has no gateway, too many addresses, or a damaged key")
    return JoinCode(
        urls=tuple(check_gateway_url(url, allow_plain=allow_plain) for url in wire.u),
        gateway_jkt=Jkt(wire.k),
        mesh=MeshId(wire.m),
        expected_node=expected,
        expires_at_ms=wire.e,
        token=token,
    )


def _unwrap(text: str) -> bytes:
    if len(text) > JOIN_CODE_CHARS_MAX:
        raise BadJoinCode("the join code is too long")
    if not text.startswith(_PREFIX):
        newer = _OTHER_VERSION.match(text) is not None
        raise BadJoinCode(
            "the join code is of another version" if newer else f"a join code begins with {_PREFIX}",
            hint="update this gateway" if newer else _COPY_IT_ALL,
        )
    try:
        raw = base64url.decode(text[len(_PREFIX) :])
    except ValueError:
        raw = b""
    checksum, body = raw[:_CHECKSUM_BYTES], raw[_CHECKSUM_BYTES:]
    if not body or checksum != _checksum(body):
        raise BadJoinCode(
            "the join code is damaged", hint="copy the whole code that `gateway invite` printed"
        )
    return body


def _checksum(raw: bytes) -> bytes:
    return sha256(_PREFIX.encode() + raw).digest()[:_CHECKSUM_BYTES]
