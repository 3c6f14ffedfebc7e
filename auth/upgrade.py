"""Upgrade: a ticket for a socket, once. The order of the steps is the contract; the last alone changes state.

ticket signed by us since this start · not expired · known, not used, not void · proof by the ticket's key ·
room · then, together: ticket used, invite used, member written, audit
"""

import msgspec

from auth.attempt import Attempt
from auth.audit import AuditAction
from auth.errors import NodeMismatch, RoomForbidden, TicketAlreadyUsed
from auth.gate import Gate
from auth.invites import Invite, InviteId, InviteStatus, InviteStep
from auth.keys import PublicKey
from auth.members import KeyOf, Member
from auth.proofs import check_socket_proof
from auth.tickets import Ticket, TicketStatus, claims_of, invalid_ticket, read_ticket
from outbox.ids import NodeId


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Who may have the socket, once the transaction is committed."""

    node: NodeId
    key: PublicKey
    room: str
    session_id: str
    member: Member | None = None
    """Set when this upgrade made the node a member: its admission record is to be published before 101."""

    @property
    def first(self) -> bool:
        """Whether this upgrade redeemed an invite."""
        return self.member is not None


def upgrade(
    gate: Gate,
    ticket_text: str,
    proof: str,
    *,
    path: str,
    room: str,
    attempt: Attempt,
    key_of: KeyOf,
) -> Admission:
    """Raises the AuthError of the first step that fails; see Gatekeeper.upgrade."""
    ticket = _find(gate, ticket_text, attempt)
    invite = _reserved_invite(gate, ticket.invite, ticket) if ticket.invite is not None else None
    key = _check_node(gate, ticket, ticket_text, proof, path)
    if key_of(ticket.node) != key:
        gate.check_standing(ticket.node, key)  # the ticket may be older than that
    if invite is not None:
        # Two invites may be on their way to one name: the first to arrive owns it.
        gate.check_owner(ticket.node, key, key_of)
    if room not in ticket.rooms:
        raise RoomForbidden("the ticket does not open this room")
    gate.ledger.put_ticket(msgspec.structs.replace(ticket, status=TicketStatus.USED))
    member = _admit(gate, invite, ticket, key, attempt) if invite is not None else None
    return Admission(node=ticket.node, key=key, room=room, session_id=ticket.session, member=member)


def _find(gate: Gate, text: str, attempt: Attempt) -> Ticket:
    claims = read_ticket(text, gate.node, gate.ticket_key.public, gate.boot, attempt.at_ms)
    ticket = gate.ledger.ticket(claims.jti)
    if ticket is None or claims_of(ticket, gate.node) != claims:
        raise invalid_ticket()
    attempt.node, attempt.subject = ticket.node, ticket.jti
    if ticket.status is TicketStatus.USED:
        raise TicketAlreadyUsed("the ticket was used before", hint="renew, then try again")
    if ticket.status is TicketStatus.VOID:
        raise invalid_ticket()
    return ticket


def _reserved_invite(gate: Gate, name: InviteId, ticket: Ticket) -> Invite:
    # A second lock: the invite itself must still wait for this very ticket, whatever the ticket's row says.
    invite = gate.ledger.invite(name)
    if (
        invite is None
        or invite.status is not InviteStatus.RESERVED
        or invite.reservation is None
        or invite.reservation.ticket != ticket.jti
    ):
        raise invalid_ticket()
    return invite


def _check_node(gate: Gate, ticket: Ticket, text: str, proof: str, path: str) -> PublicKey:
    key = check_socket_proof(proof, htu=path, ticket=text, node=ticket.node, gateway=gate.node)
    if key.jkt != ticket.jkt:
        raise NodeMismatch("the node proof is by another key than the ticket is for")
    return key


def _admit(gate: Gate, invite: Invite, ticket: Ticket, key: PublicKey, attempt: Attempt) -> Member:
    gate.ledger.put_invite(invite.after(InviteStep.USE))
    earlier = gate.ledger.member(ticket.node)
    member = Member(
        node=ticket.node,
        key=key.text,
        jkt=key.jkt,
        rooms=invite.rooms,
        invite=invite.id,
        counter=earlier.counter + 1 if earlier is not None else 1,
        admitted_at_ms=attempt.at_ms,
    )
    gate.ledger.put_member(member)
    attempt.jkt, attempt.subject = key.jkt, invite.id
    gate.ledger.append_audit(attempt.event(AuditAction.NODE_ADMITTED))
    return member
