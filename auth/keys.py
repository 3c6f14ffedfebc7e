"""Ed25519 keys: the one we sign with, and public keys that were checked before anything trusts them.

Source: RFC 8032 (signatures), RFC 8037 (JWK form), RFC 7638 (thumbprint, ``jkt``).
"""

from functools import cached_property
from hashlib import sha256
from typing import Literal, NewType, final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from auth.curve import in_prime_order_group
from auth.errors import InvalidKey
from outbox import base64url

Jkt = NewType("Jkt", str)
"""RFC 7638 thumbprint of a public key: 43 characters of base64url."""


class Jwk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The only JWK there is here: a public Ed25519 key, no private member, no extra one (RFC 8037)."""

    crv: Literal["Ed25519"]
    kty: Literal["OKP"]
    x: str


@final
class PublicKey:
    """A public key whose encoding is canonical and whose point has prime order (see ``auth.curve``)."""

    def __init__(self, raw: bytes, *, checked: bool) -> None:
        # Use from_bytes, from_text or from_jwk: they check.
        assert checked
        self.raw = raw

    @classmethod
    def from_bytes(cls, raw: bytes) -> "PublicKey":
        """From the 32 bytes of RFC 8032. Raises InvalidKey."""
        if type(raw) is not bytes or not in_prime_order_group(raw):
            raise InvalidKey("not an Ed25519 public key in canonical form and of prime order")
        return cls(raw, checked=True)

    @classmethod
    def from_text(cls, text: str) -> "PublicKey":
        """From 43 characters of base64url. Raises InvalidKey."""
        try:
            return cls.from_bytes(base64url.decode(text))
        except ValueError:
            raise InvalidKey("not an Ed25519 public key in base64url") from None

    @classmethod
    def from_jwk(cls, jwk: object) -> "PublicKey":
        """From a Jwk or decoded JSON with exactly its members. Raises InvalidKey."""
        try:
            checked = jwk if isinstance(jwk, Jwk) else msgspec.convert(jwk, Jwk)
        except msgspec.ValidationError:
            raise InvalidKey("not a public Ed25519 JWK") from None
        return cls.from_text(checked.x)

    @cached_property
    def text(self) -> str:
        """The raw key in base64url."""
        return base64url.encode(self.raw)

    @cached_property
    def jwk(self) -> Jwk:
        """The key as JWK."""
        return Jwk(crv="Ed25519", kty="OKP", x=self.text)

    @cached_property
    def jkt(self) -> Jkt:
        """The RFC 7638 thumbprint: hash of the required members in lexical order without white space."""
        # Jwk's fields stand in lexical order.
        return Jkt(base64url.encode(sha256(msgspec.json.encode(self.jwk)).digest()))

    @cached_property
    def verifier(self) -> Ed25519PublicKey:
        """The key in the form that the JWS library takes."""
        return Ed25519PublicKey.from_public_bytes(self.raw)

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether this key signed the message; any bad signature is False, nothing is raised."""
        if type(signature) is not bytes or len(signature) != 64:
            return False
        try:
            self.verifier.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and other.raw == self.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"PublicKey({self.text})"


def readable_key(raw: bytes) -> PublicKey | None:
    """The key that somebody else's record holds; None for one that no honest node can have."""
    try:
        return PublicKey.from_bytes(raw)
    except InvalidKey:
        return None


@final
class SigningKey:
    """A private Ed25519 key; ``repr`` shows its public half only."""

    def __init__(self, seed32: bytes) -> None:
        self.signer = Ed25519PrivateKey.from_private_bytes(seed32)
        # A key made from a seed is canonical and of prime order by construction.
        self.public = PublicKey(self.signer.public_key().public_bytes_raw(), checked=True)

    def sign(self, message: bytes) -> bytes:
        """64 bytes of Ed25519."""
        return self.signer.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey({self.public.text})"
