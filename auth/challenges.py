"""Nonces that the gateway need not remember until they come back.

``base64url(random 16 ‖ expiry 8 ‖ HMAC-SHA256(nonce key, domain ‖ random ‖ expiry ‖ gateway ‖ node))``,
expiry in milliseconds of the gateway's clock. So strangers who ask for challenges cost no storage; only a
consumed nonce is stored, until it would have expired anyway.
"""

import hmac
from hashlib import sha256

import msgspec

from auth.errors import ReplayDetected
from auth.limits import NONCE_LIFE_MS
from outbox import base64url
from outbox.ids import NodeId

_DOMAIN = b"ansible-nonce-v1\x00"
_RANDOM = 16
_HEAD = _RANDOM + 8


class Nonce(msgspec.Struct, frozen=True):
    """A nonce of ours that was read back."""

    id: bytes
    """Its random part: the key under which it is consumed."""
    expires_at_ms: int


def make_nonce(
    nonce_key: bytes, gateway: NodeId, node: NodeId, now_ms: int, entropy: bytes
) -> tuple[str, Nonce]:
    """A fresh nonce for one node, from at least 16 random bytes."""
    nonce = Nonce(entropy[:_RANDOM], now_ms + NONCE_LIFE_MS)
    head = nonce.id + nonce.expires_at_ms.to_bytes(8)
    return base64url.encode(head + _mac(nonce_key, head, gateway, node)), nonce


def read_nonce(text: str, nonce_key: bytes, gateway: NodeId, node: NodeId, now_ms: int) -> Nonce:
    """The nonce, if it is ours, for this node, and in time. Raises ReplayDetected.

    Whether it was consumed before, only the ledger knows.
    """
    try:
        raw = base64url.decode(text)
    except ValueError:
        raise replayed() from None
    head, mac = raw[:_HEAD], raw[_HEAD:]
    if len(head) != _HEAD or not hmac.compare_digest(mac, _mac(nonce_key, head, gateway, node)):
        raise replayed()
    nonce = Nonce(head[:_RANDOM], int.from_bytes(head[_RANDOM:]))
    if now_ms >= nonce.expires_at_ms:
        raise replayed()
    return nonce


def replayed() -> ReplayDetected:
    """The one refusal for foreign, stale and consumed nonces."""
    return ReplayDetected("the nonce is not fresh", hint="ask for a new challenge")


def _mac(nonce_key: bytes, head: bytes, gateway: NodeId, node: NodeId) -> bytes:
    # Node names hold no NUL, so the text has one reading.
    text = _DOMAIN + head + gateway.encode() + b"\x00" + node.encode()
    return hmac.new(nonce_key, text, sha256).digest()
