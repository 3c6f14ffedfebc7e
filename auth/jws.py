"""Signed tokens: JWS compact form (RFC 7515), EdDSA over Ed25519 (RFC 8037), one closed profile.

PyJWT computes and checks the signature. Everything that it leaves open is closed here, before and after it
(RFC 8725): exact ``alg`` and ``typ``, exactly the header members of the profile, canonical base64url, no
duplicate keys, real integers, no unknown claim, bounded length. Claims are judged by the caller, not by
PyJWT's rules, which take ``"1_000"`` and ``true`` for times.

A token carries one of two headers:

=======================  ================================================================
``{alg, typ, kid}``      signed by a key the reader has (tickets)
``{alg, typ, jwk}``      brings its key; the reader decides what that key may do (proofs)
=======================  ================================================================

Nothing but InvalidJws ever leaves this module, whatever the token is.
"""

import re
from typing import Literal, NamedTuple, TypeVar

import jwt
import msgspec

from auth import strictjson
from auth.errors import InvalidJws, InvalidRequest, RequestTooLarge
from auth.keys import Jwk, PublicKey, SigningKey
from auth.limits import JWS_CHARS_MAX
from outbox import base64url

_Claims = TypeVar("_Claims")
_Header = TypeVar("_Header", "_KidHeader", "_JwkHeader")

_PART = "[A-Za-z0-9_-]+"
_COMPACT = re.compile(rf"({_PART})\.({_PART})\.({_PART})", re.ASCII)
_ALGORITHMS = ["EdDSA"]
_engine = jwt.PyJWS(algorithms=_ALGORITHMS)


class _KidHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: Literal["EdDSA"]
    typ: str
    kid: str


class _JwkHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alg: Literal["EdDSA"]
    typ: str
    jwk: Jwk


class _Parts(NamedTuple):
    header: bytes
    payload: bytes
    signature: bytes


def sign(typ: str, claims: msgspec.Struct, key: SigningKey, *, kid: str | None = None) -> str:
    """A token of that type; with ``kid`` in its header, else with the public key itself."""
    named = {"kid": kid} if kid is not None else {"jwk": msgspec.to_builtins(key.public.jwk)}
    return _engine.encode(
        msgspec.json.encode(claims), key.signer, algorithm="EdDSA", headers={"typ": typ, **named}
    )


def verify(token: str, typ: str, key: PublicKey, claims: type[_Claims], *, kid: str) -> _Claims:
    """The claims of a token signed by ``key`` that names it exactly ``kid``. Raises InvalidJws."""
    parts = _split(token)
    header = _read_header(parts, typ, _KidHeader)
    if header.kid != kid:
        raise InvalidJws("the token names another key")
    return _read_claims(token, parts, key, claims)


def verify_with_own_key(token: str, typ: str, claims: type[_Claims]) -> tuple[PublicKey, _Claims]:
    """The key that a token brings, and its claims, which that key signed. Raises InvalidJws."""
    parts = _split(token)
    header = _read_header(parts, typ, _JwkHeader)
    try:
        key = PublicKey.from_jwk(header.jwk)
    except InvalidRequest:
        raise InvalidJws("the token brings a key that is none") from None
    return key, _read_claims(token, parts, key, claims)


def _split(token: str) -> _Parts:
    match = _COMPACT.fullmatch(token) if len(token) <= JWS_CHARS_MAX else None
    if match is None:
        raise InvalidJws("not a token in compact form")
    try:
        parts = _Parts(*(base64url.decode(part) for part in match.groups()))
    except ValueError:
        raise InvalidJws("a part of the token is not canonical base64url") from None
    if len(parts.signature) != 64:
        raise InvalidJws("the signature has the wrong length")
    return parts


def _read_header(parts: _Parts, typ: str, header_type: type[_Header]) -> _Header:
    header = _read(parts.header, header_type)
    if header.typ != typ:
        raise InvalidJws("the token is of another type")
    return header


def _read_claims(token: str, parts: _Parts, key: PublicKey, claims: type[_Claims]) -> _Claims:
    try:
        _engine.decode(token, key.verifier, algorithms=_ALGORITHMS)
    except jwt.PyJWTError:
        raise InvalidJws("the token is not signed by that key") from None
    return _read(parts.payload, claims)


def _read(raw: bytes, record: type[_Claims]) -> _Claims:
    try:
        return strictjson.decode(raw, record, bytes_max=JWS_CHARS_MAX)
    except (InvalidRequest, RequestTooLarge):
        raise InvalidJws("header or claims are not those of the profile") from None
