"""What one gateway is, signs with and remembers by: exchange, renewal and upgrade stand on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from auth.certificates import mesh_id_of
from auth.challenges import Nonce, read_nonce, replayed
from auth.errors import KeyRevoked, NodeMismatch, RateLimited, RoomForbidden
from auth.invites import InviteId
from auth.keys import PublicKey, SigningKey
from auth.ledger import Ledger
from auth.limits import NONCES_MAX, TICKET_LIFE_S, TICKETS_MAX
from auth.members import KeyOf
from auth.messages import TicketAnswer
from auth.tickets import Ticket, TicketStatus, make_ticket_ids, mint_ticket
from outbox.ids import MeshId, NodeId
from outbox.timestamps import rfc3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Identity, keys, rooms and ledger of one gateway since one start."""

    mesh: MeshId
    node: NodeId
    node_key: SigningKey
    ticket_key: SigningKey
    """Made at this start, never stored."""
    boot: str
    """Id of this start: ``kid`` of its tickets."""
    nonce_key: bytes = field(repr=False)
    certificate: str = field(repr=False)
    """Seed certificate; empty when this node is no seed: it renews and opens sockets, but invites nobody."""
    rooms: tuple[str, ...]
    """All rooms that are served here."""
    ledger: Ledger

    def fresh_nonce(self, text: str, node: NodeId, now_ms: int) -> Nonce:
        """The nonce, if it is ours, in time and unused. Raises ReplayDetected. Changes nothing."""
        nonce = read_nonce(text, self.nonce_key, self.node, node, now_ms)
        if self.ledger.nonce_consumed(nonce):
            raise replayed()
        return nonce

    def check_owner(self, node: NodeId, key: PublicKey, key_of: KeyOf) -> None:
        """Raises NodeMismatch when the name belongs to another key, or the key to another name or use.

        Raises KeyRevoked when the mesh has put the key or the name out.
        """
        if node == self.node or key == self.node_key.public or mesh_id_of(key) == self.mesh:
            raise NodeMismatch(
                "the node name or its key belongs to this gateway", hint="choose another node name"
            )
        admitted, by_key = key_of(node), self.ledger.member_by_key(key.jkt)
        member = self.ledger.member(node)
        if admitted != key:
            self.check_standing(node, key)
        taken = (admitted is not None and admitted != key) or (
            member is not None and member.jkt != key.jkt and not self.ledger.is_revoked(member.jkt)
        )
        if taken or (by_key is not None and by_key.node != node):
            raise NodeMismatch("the node name belongs to another key", hint="choose another node name")

    def check_standing(self, node: NodeId, key: PublicKey) -> None:
        """Raises KeyRevoked for a key that was put out, and for a name that may not come back."""
        if self.ledger.is_revoked(key.jkt):
            raise KeyRevoked(
                f"this key of {node} was revoked",
                hint="it cannot come back; with a new key and a new invite the machine can",
            )
        if self.ledger.is_banned(node):
            raise KeyRevoked(f"the name {node} was revoked for good", hint="join under another name")

    def make_space(self, now_ms: int) -> None:
        """Forget what has expired. Raises RateLimited when too much is still alive: never forgets that."""
        self.ledger.prune(now_ms)
        if self.ledger.nonces_held() >= NONCES_MAX or self.ledger.tickets_held() >= TICKETS_MAX:
            raise RateLimited("too many tickets in flight", retry_after_ms=TICKET_LIFE_S * 1000)

    def issue(self, ticket: Ticket, nonce: Nonce) -> TicketAnswer:
        """Consume the nonce, remember the ticket, sign it."""
        self.ledger.consume_nonce(nonce)
        self.ledger.put_ticket(ticket)
        return TicketAnswer(
            ws_ticket=mint_ticket(ticket, self.node, self.ticket_key, self.boot),
            expires_at=rfc3339(ticket.expires_at_s * 1000),
            rooms=ticket.rooms,
            session_id=ticket.session,
        )

    def void(self, jti: str) -> None:
        """A ticket opens nothing from now on."""
        ticket = self.ledger.ticket(jti)
        if ticket is not None and ticket.status is TicketStatus.ISSUED:
            self.ledger.put_ticket(msgspec.structs.replace(ticket, status=TicketStatus.VOID))


def new_ticket(
    node: NodeId,
    key: PublicKey,
    rooms: tuple[str, ...],
    *,
    invite: InviteId | None,
    now_ms: int,
    entropy: bytes,
) -> Ticket:
    """The row of a ticket that is about to be issued."""
    jti, session = make_ticket_ids(entropy)
    return Ticket(
        jti=jti,
        session=session,
        node=node,
        jkt=key.jkt,
        rooms=rooms,
        invite=invite,
        issued_at_s=now_ms // 1000,
    )


def check_rooms(asked: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """What was asked for, sorted. Raises RoomForbidden when any of it is not allowed; never cuts it down."""
    if not set(asked) <= set(allowed):
        raise RoomForbidden("a room was asked for that is not open to this node")
    return tuple(sorted(asked))
