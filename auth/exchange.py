"""Exchange: an invite token for a ticket. The order of the steps is the contract; the last alone writes.

0 shape · 1 token known, secret right, not revoked, not spent · 2 not expired · 3 node, key, proof, rooms ·
4 nonce ours and unused · 5 reserve for (key, node, rooms) · 6 ticket

Nothing is said about a token's state (spent, expired) to somebody who does not know its secret, and nothing
about node names to somebody without a valid token. Source: ``docs/PROTOCOL.md``.
"""

from typing import NoReturn

from auth.attempt import Attempt
from auth.audit import AuditAction
from auth.errors import ExpiredToken, NodeMismatch, TokenAlreadyUsed
from auth.gate import Gate, check_rooms, new_ticket
from auth.invites import (
    Invite,
    InviteStatus,
    InviteStep,
    Reservation,
    check_secret,
    read_invite_token,
    unknown_token,
)
from auth.keys import PublicKey
from auth.members import KeyOf
from auth.messages import EXCHANGE_PATH, ExchangeRequest, TicketAnswer, read_request
from auth.proofs import check_request_proof

_SPENT = frozenset({InviteStatus.USED, InviteStatus.CONTESTED})


def exchange(gate: Gate, body: bytes, entropy: bytes, attempt: Attempt, key_of: KeyOf) -> TicketAnswer:
    """Raises the AuthError of the first step that fails; see Gatekeeper.exchange."""
    request = read_request(body, ExchangeRequest)
    attempt.node = request.node_id
    invite = _find(gate, request, attempt)
    if attempt.at_ms >= invite.expires_at_ms:
        raise ExpiredToken("the invite has expired", hint="ask for a new invite")
    key = _check_node(gate, invite, request, key_of)
    attempt.jkt = key.jkt
    rooms = check_rooms(request.requested_rooms, invite.rooms)
    nonce = gate.fresh_nonce(request.nonce, request.node_id, attempt.at_ms)
    _check_reservation(gate, invite, Reservation(key.jkt, request.node_id, rooms, ticket=""), attempt)
    gate.make_space(attempt.at_ms)
    ticket = new_ticket(request.node_id, key, rooms, invite=invite.id, now_ms=attempt.at_ms, entropy=entropy)
    if invite.reservation is not None:
        gate.void(invite.reservation.ticket)
    gate.ledger.put_invite(invite.reserved(Reservation(key.jkt, request.node_id, rooms, ticket.jti)))
    gate.ledger.append_audit(attempt.event(AuditAction.INVITE_RESERVED))
    return gate.issue(ticket, nonce)


def _find(gate: Gate, request: ExchangeRequest, attempt: Attempt) -> Invite:
    token = read_invite_token(request.invite_token)
    known = gate.ledger.invite(token.id)
    # The id goes into the audit only when it is one of ours: else it is a stranger's text.
    attempt.subject = known.id if known is not None else ""
    invite = check_secret(known, token)
    if invite.status is InviteStatus.REVOKED:
        raise unknown_token()
    if invite.status in _SPENT:
        raise _spent()
    return invite


def _check_node(gate: Gate, invite: Invite, request: ExchangeRequest, key_of: KeyOf) -> PublicKey:
    if invite.expected_node is not None and invite.expected_node != request.node_id:
        raise NodeMismatch("the invite is for another node name")
    key = check_request_proof(
        request.node_proof,
        htu=EXCHANGE_PATH,
        nonce=request.nonce,
        node=request.node_id,
        gateway=gate.node,
        rh=request.proof_hash(),
    )
    if invite.expected_key is not None and invite.expected_key != key.jkt:
        raise NodeMismatch("the invite is for another key")
    gate.check_owner(request.node_id, key, key_of)
    return key


def _check_reservation(gate: Gate, invite: Invite, wanted: Reservation, attempt: Attempt) -> None:
    held = invite.reservation
    if held is None:
        return
    if held.jkt != wanted.jkt:
        _contest(gate, invite, held, attempt)
    if (held.node, held.rooms) != (wanted.node, wanted.rooms):
        raise TokenAlreadyUsed("the invite is reserved for another node name or other rooms")


def _contest(gate: Gate, invite: Invite, held: Reservation, attempt: Attempt) -> NoReturn:
    gate.void(held.ticket)
    gate.ledger.put_invite(invite.after(InviteStep.CONTEST))
    gate.ledger.append_audit(attempt.event(AuditAction.INVITE_CONTESTED, f"reserved by key {held.jkt}"))
    raise _spent()


def _spent() -> TokenAlreadyUsed:
    return TokenAlreadyUsed(
        "the invite was used before", hint="a member renews by its key; else ask for a new invite"
    )
