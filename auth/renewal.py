"""Renewal: a member's key for a ticket, at any gateway that knows its admission.

0 shape · 3 member, key, proof, rooms · 4 nonce ours and unused · 6 ticket (numbers as in ``auth.exchange``)
"""

from auth.attempt import Attempt
from auth.errors import NodeMismatch
from auth.gate import Gate, check_rooms, new_ticket
from auth.keys import PublicKey
from auth.members import KeyOf
from auth.messages import RENEW_PATH, RenewRequest, TicketAnswer, read_request
from auth.proofs import check_request_proof


def renew(gate: Gate, body: bytes, entropy: bytes, attempt: Attempt, key_of: KeyOf) -> TicketAnswer:
    """Raises the AuthError of the first step that fails; see Gatekeeper.renew."""
    request = read_request(body, RenewRequest)
    attempt.node = request.node_id
    key = _check_member(gate, request, key_of)
    attempt.jkt = key.jkt
    member = gate.ledger.member(request.node_id)
    rooms = check_rooms(request.requested_rooms, member.rooms if member is not None else gate.rooms)
    nonce = gate.fresh_nonce(request.nonce, request.node_id, attempt.at_ms)
    gate.make_space(attempt.at_ms)
    ticket = new_ticket(request.node_id, key, rooms, invite=None, now_ms=attempt.at_ms, entropy=entropy)
    attempt.subject = ticket.jti
    return gate.issue(ticket, nonce)


def _check_member(gate: Gate, request: RenewRequest, key_of: KeyOf) -> PublicKey:
    key = check_request_proof(
        request.node_proof,
        htu=RENEW_PATH,
        nonce=request.nonce,
        node=request.node_id,
        gateway=gate.node,
        rh=request.proof_hash(),
    )
    gate.check_owner(request.node_id, key, key_of)
    if key_of(request.node_id) is None and gate.ledger.member(request.node_id) is None:
        raise NodeMismatch("the node is not a member", hint="join with an invite first")
    return key
