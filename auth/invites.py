"""Invites: a single-use secret, and the machine that makes it single-use.

::

    open ──reserve(key, node, rooms)──▶ reserved ──use──▶ used
      │                                   │  ▲ └─reserve, same three (a lost answer)
      │                                   │  └─┘
      │                                   ├──contest: another key shows the right secret──▶ contested
      └──────────revoke──▶ revoked ◀──────┘

``used``, ``contested`` and ``revoked`` are terminal and outlive the node that joined. A leaked secret is so
found out: whoever comes second makes the invite worthless for both, and the operator sees it.

Token: ``inv_<16 of a-z2-7>.<43 of base64url>``; at rest only the SHA-256 of the secret.
Source: ``docs/PROTOCOL.md``.
"""

import re
from base64 import b32encode
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import ClassVar, NewType

import msgspec

from auth.errors import InvalidToken, TokenAlreadyUsed
from auth.keys import Jkt
from auth.redacted import Redacted
from outbox import base64url
from outbox.ids import NodeId

InviteId = NewType("InviteId", str)
"""``inv_`` and 16 characters of ``a-z2-7``; no secret."""

INVITE_ENTROPY_BYTES = 42
"""10 for the id, 32 for the secret."""

_TOKEN = re.compile(r"(inv_[a-z2-7]{16})\.([A-Za-z0-9_-]{43})", re.ASCII)


class InviteStatus(StrEnum):
    """Where an invite stands."""

    OPEN = "open"
    RESERVED = "reserved"
    USED = "used"
    CONTESTED = "contested"
    REVOKED = "revoked"


class InviteStep(StrEnum):
    """What can happen to an invite."""

    RESERVE = "reserve"
    USE = "use"
    CONTEST = "contest"
    REVOKE = "revoke"


STEPS: dict[tuple[InviteStatus, InviteStep], InviteStatus] = {
    (InviteStatus.OPEN, InviteStep.RESERVE): InviteStatus.RESERVED,
    (InviteStatus.OPEN, InviteStep.REVOKE): InviteStatus.REVOKED,
    (InviteStatus.RESERVED, InviteStep.RESERVE): InviteStatus.RESERVED,
    (InviteStatus.RESERVED, InviteStep.USE): InviteStatus.USED,
    (InviteStatus.RESERVED, InviteStep.CONTEST): InviteStatus.CONTESTED,
    (InviteStatus.RESERVED, InviteStep.REVOKE): InviteStatus.REVOKED,
}
"""The whole machine; a missing key is an illegal step."""


class InviteToken(Redacted, frozen=True):
    """The secret as it is handed to one person."""

    shown: ClassVar[tuple[str, ...]] = ("id",)
    id: InviteId
    secret: bytes

    @property
    def text(self) -> str:
        """The form that is copied and sent."""
        return f"{self.id}.{base64url.encode(self.secret)}"

    @property
    def secret_hash(self) -> bytes:
        """What the issuer keeps. The secret has 256 random bits, so one SHA-256 is enough."""
        return sha256(self.secret).digest()


class Reservation(msgspec.Struct, frozen=True):
    """Who is in the middle of joining with an invite, and by which ticket."""

    jkt: Jkt
    node: NodeId
    rooms: tuple[str, ...]
    ticket: str
    """``jti`` of the only ticket that may redeem the invite; earlier ones are void."""


class Invite(Redacted, frozen=True, kw_only=True):
    """The issuer's row of one invite; times in milliseconds of the issuer's clock."""

    shown: ClassVar[tuple[str, ...]] = ("id", "status", "expected_node", "expires_at_ms")
    id: InviteId
    secret_hash: bytes
    status: InviteStatus = InviteStatus.OPEN
    rooms: tuple[str, ...]
    """What its ticket and its member may open."""
    expected_node: NodeId | None = None
    expected_key: Jkt | None = None
    created_at_ms: int
    expires_at_ms: int
    reservation: Reservation | None = None

    def after(self, step: InviteStep) -> "Invite":
        """This invite after a step. Raises TokenAlreadyUsed when the step is not in the table."""
        status = STEPS.get((self.status, step))
        if status is None:
            raise TokenAlreadyUsed(f"the invite is {self.status}", hint="ask for a new invite")
        return msgspec.structs.replace(self, status=status)

    def reserved(self, reservation: Reservation) -> "Invite":
        """This invite, held for one key, node and set of rooms. Raises TokenAlreadyUsed."""
        return msgspec.structs.replace(self.after(InviteStep.RESERVE), reservation=reservation)


def make_invite_token(entropy: bytes) -> InviteToken:
    """A token from at least 42 random bytes."""
    assert len(entropy) >= INVITE_ENTROPY_BYTES
    name = b32encode(entropy[:10]).decode().lower()
    return InviteToken(InviteId(f"inv_{name}"), entropy[10:INVITE_ENTROPY_BYTES])


def read_invite_token(text: str) -> InviteToken:
    """Read a token. Raises InvalidToken, which says the same for a bad shape as for an unknown token."""
    match = _TOKEN.fullmatch(text)
    try:
        if match is not None:
            return InviteToken(InviteId(match[1]), base64url.decode(match[2]))
    except ValueError:
        pass
    raise unknown_token()


def check_secret(invite: Invite | None, token: InviteToken) -> Invite:
    """The invite, if the token's secret is its secret. Raises InvalidToken.

    An unknown invite is compared too, so that its answer takes as long as a wrong secret's.
    """
    known = invite.secret_hash if invite is not None else bytes(32)
    if not compare_digest(known, token.secret_hash) or invite is None:
        raise unknown_token()
    return invite


def unknown_token() -> InvalidToken:
    """The one refusal for unknown, wrong and revoked tokens."""
    return InvalidToken("the invite token is not valid", hint="ask for a new invite")
