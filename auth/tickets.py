"""wsTickets: 45 seconds, one socket, one key.

JWS ``typ ansible-ticket+jwt``, signed by a key that the gateway makes at each start and never stores; ``kid``
is that start's id. A restart so voids whatever was outstanding. Claims (RFC 7519, ``cnf`` of RFC 7800):

``iss`` gateway · ``sub`` node · ``aud`` ``ansible-yjs`` · ``rooms`` · ``inviteId`` (absent on renewal) ·
``jti`` · ``iat`` · ``exp`` · ``cnf.jkt`` the node key that must prove itself at the socket.
"""

from enum import StrEnum
from typing import ClassVar, Literal

import msgspec

from auth import jws
from auth.errors import ExpiredTicket, InvalidJws, InvalidTicket
from auth.invites import InviteId
from auth.keys import Jkt, PublicKey, SigningKey
from auth.limits import TICKET_LIFE_S
from auth.redacted import Redacted
from outbox import base64url
from outbox.ids import NodeId

_TYP = "ansible-ticket+jwt"


class TicketStatus(StrEnum):
    """Where a ticket stands; ``used`` and ``void`` are terminal."""

    ISSUED = "issued"
    USED = "used"
    VOID = "void"
    """Superseded by a later exchange, or its invite was contested or revoked."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """The issuer's row of one ticket. The signed text is not kept."""

    jti: str
    session: str
    node: NodeId
    jkt: Jkt
    rooms: tuple[str, ...]
    invite: InviteId | None = None
    issued_at_s: int
    status: TicketStatus = TicketStatus.ISSUED

    @property
    def expires_at_s(self) -> int:
        """The first second in which it opens nothing any more."""
        return self.issued_at_s + TICKET_LIFE_S


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """RFC 7800 ``cnf``."""

    jkt: str


class TicketClaims(
    Redacted, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What the signed text says."""

    shown: ClassVar[tuple[str, ...]] = ("iss", "sub", "rooms", "jti", "exp")
    iss: str
    sub: str
    aud: Literal["ansible-yjs"]
    rooms: tuple[str, ...]
    invite_id: str | None = None
    jti: str
    iat: int
    exp: int
    cnf: Confirmation


def make_ticket_ids(entropy: bytes) -> tuple[str, str]:
    """``(jti, session id)`` from at least 32 random bytes."""
    assert len(entropy) >= 32
    return "tkt_" + base64url.encode(entropy[:16]), "ses_" + base64url.encode(entropy[16:32])


def claims_of(ticket: Ticket, gateway: NodeId) -> TicketClaims:
    """The claims that belong to a row: a signed text that says anything else is not this ticket."""
    return TicketClaims(
        iss=gateway,
        sub=ticket.node,
        aud="ansible-yjs",
        rooms=ticket.rooms,
        invite_id=ticket.invite,
        jti=ticket.jti,
        iat=ticket.issued_at_s,
        exp=ticket.expires_at_s,
        cnf=Confirmation(ticket.jkt),
    )


def mint_ticket(ticket: Ticket, gateway: NodeId, key: SigningKey, boot: str) -> str:
    """The signed text of a ticket."""
    return jws.sign(_TYP, claims_of(ticket, gateway), key, kid=boot)


def read_ticket(text: str, gateway: NodeId, key: PublicKey, boot: str, now_ms: int) -> TicketClaims:
    """The claims of a ticket that this gateway signed since its start.

    Raises InvalidTicket, then ExpiredTicket. Whether it was used, only the ledger knows.
    """
    try:
        claims = jws.verify(text, _TYP, key, TicketClaims, kid=boot)
    except InvalidJws:
        raise invalid_ticket() from None
    if claims.iss != gateway:
        raise invalid_ticket()
    if claims.iat * 1000 > now_ms or claims.exp - claims.iat != TICKET_LIFE_S:
        raise invalid_ticket()
    if now_ms >= claims.exp * 1000:
        raise ExpiredTicket("the ticket has expired", hint="renew, then try again")
    return claims


def invalid_ticket() -> InvalidTicket:
    """The one refusal for foreign, forged, unknown and voided tickets."""
    return InvalidTicket("the ticket is not valid", hint="renew, then try again")
