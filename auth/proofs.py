"""Node proofs: "I hold this node's key, and I want exactly this request", in the manner of DPoP (RFC 9449).

JWS ``typ ansible-node-proof+jwt`` with the node key in its header. Two shapes, so that one can never pass as
the other:

===========  ================================================  =====================================
request      exchange, renew: ``htm htu nonce node gw rh iat``  ``rh``: hash of the request's fields
socket       upgrade: ``htm htu ath node gw iat``               ``ath``: hash of the ticket
===========  ================================================  =====================================

``htu`` is the path alone: a gateway has several names, and the signature names the gateway itself (``gw``).
``iat`` is carried for the reader of a log and never judged: the nonce, or the single-use ticket, is what is
fresh.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal, TypeVar

import msgspec

from auth import jws
from auth.errors import InvalidJws, NodeMismatch
from auth.keys import PublicKey, SigningKey
from outbox import base64url
from outbox.ids import NodeId

_TYP = "ansible-node-proof+jwt"

_Claims = TypeVar("_Claims")


class RequestProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims of a proof for one POST."""

    htm: Literal["POST"] = "POST"
    htu: str
    nonce: str
    node: str
    gw: str
    rh: str
    iat: int


class SocketProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims of a proof for one WebSocket upgrade."""

    htm: Literal["GET"] = "GET"
    htu: str
    ath: str
    node: str
    gw: str
    iat: int


def request_hash(htu: str, fields: Sequence[str], rooms: Sequence[str]) -> str:
    """Base64url of SHA-256 over the compact JSON array ``[htu, *fields, rooms]``.

    All texts are ASCII by their own rules, so JSON has one form for them in every language.
    """
    return base64url.encode(sha256(msgspec.json.encode([htu, *fields, list(rooms)])).digest())


def ticket_hash(ticket: str) -> str:
    """Base64url of SHA-256 over the ticket's text (``ath`` of RFC 9449)."""
    return base64url.encode(sha256(ticket.encode()).digest())


def sign_proof(claims: RequestProof | SocketProof, key: SigningKey) -> str:
    """The proof as text."""
    return jws.sign(_TYP, claims, key)


def check_request_proof(
    proof: str, *, htu: str, nonce: str, node: NodeId, gateway: NodeId, rh: str
) -> PublicKey:
    """The key that signed this very request. Raises NodeMismatch."""
    key, claims = _open(proof, RequestProof)
    wanted = RequestProof(htu=htu, nonce=nonce, node=node, gw=gateway, rh=rh, iat=claims.iat)
    if claims != wanted:
        raise _mismatch()
    return key


def check_socket_proof(proof: str, *, htu: str, ticket: str, node: NodeId, gateway: NodeId) -> PublicKey:
    """The key that signed this very upgrade. Raises NodeMismatch."""
    key, claims = _open(proof, SocketProof)
    wanted = SocketProof(htu=htu, ath=ticket_hash(ticket), node=node, gw=gateway, iat=claims.iat)
    if claims != wanted:
        raise _mismatch()
    return key


def _open(proof: str, claims: type[_Claims]) -> tuple[PublicKey, _Claims]:
    try:
        return jws.verify_with_own_key(proof, _TYP, claims)
    except InvalidJws:
        raise _mismatch() from None


def _mismatch() -> NodeMismatch:
    return NodeMismatch("the node proof does not fit this request")
