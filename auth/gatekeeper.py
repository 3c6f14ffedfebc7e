"""The gatekeeper: all that a gateway answers to those who want to join, renew or open a socket.

A core: bytes, times and randomness come in, answers or refusals go out, memory is the ledger's. The caller
opens a transaction before each call (``challenge`` needs none) and then

- commits, before anything is sent, when the call returned *or raised an AuthError*: a refusal may have to be
  remembered (a contested invite, the audit);
- rolls back when anything else was raised.

``client`` is where the request came from (an address), ``entropy`` is at least ``limits.ENTROPY_BYTES`` fresh
random bytes, ``now_ms`` this gateway's wall clock. ``key_of`` answers from the admission records of the mesh;
for an invite it can only be a reason to refuse.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from auth import exchange, renewal, upgrade
from auth.attempt import Attempt
from auth.audit import AuditAction, AuditEvent
from auth.challenges import make_nonce
from auth.errors import AuthError, InvalidRequest, RateLimited
from auth.gate import Gate, check_rooms
from auth.gateway_proofs import GatewayProof, prove_gateway
from auth.invites import Invite, InviteId, InviteStep, InviteToken, make_invite_token
from auth.joincodes import JoinCode
from auth.keys import Jkt
from auth.limits import (
    AUDIT_ROUTINE_BURST,
    AUDIT_ROUTINE_REFILL_PER_S,
    CLIENT_BURST,
    CLIENT_REFILL_PER_S,
    CLIENTS_MAX,
    ENTROPY_BYTES,
    INVITE_LIFE_MS_DEFAULT,
    INVITE_LIFE_MS_MAX,
)
from auth.members import KeyOf, Member, RevokedKey, nobody
from auth.messages import ChallengeAnswer, ChallengeRequest, TicketAnswer, check_room_names, read_request
from auth.ratelimit import RateLimit
from auth.upgrade import Admission
from outbox.errors import NotFound
from outbox.ids import NodeId
from outbox.timestamps import rfc3339

_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_OPERATOR = "operator"


class Gatekeeper:
    """One gateway's door."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._clients = RateLimit(burst=CLIENT_BURST, refill_per_s=CLIENT_REFILL_PER_S, keys_max=CLIENTS_MAX)
        self._routine = RateLimit(
            burst=AUDIT_ROUTINE_BURST, refill_per_s=AUDIT_ROUTINE_REFILL_PER_S, keys_max=len(AuditAction)
        )

    def challenge(self, body: bytes, now_ms: int, entropy: bytes, client: str) -> ChallengeAnswer:
        """Prove who we are and give a nonce. Changes nothing.

        Raises RateLimited, InvalidRequest, RequestTooLarge.
        """
        self._begin("challenge", client, now_ms, entropy)
        request, gate = read_request(body, ChallengeRequest), self.gate
        text, nonce = make_nonce(gate.nonce_key, gate.node, request.node_id, now_ms, entropy)
        claims = GatewayProof(
            client_nonce=request.client_nonce,
            node=request.node_id,
            nonce=text,
            gw=gate.node,
            mesh=gate.mesh,
            cert=gate.certificate,
        )
        return ChallengeAnswer(
            nonce=text,
            expires_at=rfc3339(nonce.expires_at_ms),
            gateway_id=gate.node,
            server_time=rfc3339(now_ms),
            gateway_proof=prove_gateway(claims, gate.node_key),
        )

    def exchange(
        self, body: bytes, now_ms: int, entropy: bytes, client: str, key_of: KeyOf = nobody
    ) -> TicketAnswer:
        """An invite token for a ticket; for the order of checks see ``auth.exchange``.

        Raises RateLimited, InvalidRequest, RequestTooLarge, InvalidToken, TokenAlreadyUsed, ExpiredToken,
        NodeMismatch, KeyRevoked, RoomForbidden, ReplayDetected.
        """
        attempt = self._begin("exchange", client, now_ms, entropy)
        with self._recording(attempt):
            return exchange.exchange(self.gate, body, entropy, attempt, key_of)

    def renew(self, body: bytes, now_ms: int, entropy: bytes, client: str, key_of: KeyOf) -> TicketAnswer:
        """A member's key for a ticket.

        Raises RateLimited, InvalidRequest, RequestTooLarge, NodeMismatch, KeyRevoked, RoomForbidden,
        ReplayDetected.
        """
        attempt = self._begin("renew", client, now_ms, entropy)
        with self._recording(attempt):
            answer = renewal.renew(self.gate, body, entropy, attempt, key_of)
        self._record_routine(attempt.event(AuditAction.TICKET_RENEWED))
        return answer

    def upgrade(
        self,
        ticket: str,
        proof: str,
        *,
        path: str,
        room: str,
        now_ms: int,
        client: str,
        key_of: KeyOf = nobody,
    ) -> Admission:
        """A ticket and a proof for one socket; for the order of checks see ``auth.upgrade``.

        Ticket and proof come from ``messages.read_ticket_header`` and ``read_proof_header``.
        Raises RateLimited, InvalidTicket, ExpiredTicket, TicketAlreadyUsed, NodeMismatch, KeyRevoked,
        RoomForbidden.
        """
        attempt = self._begin("upgrade", client, now_ms)
        with self._recording(attempt):
            return upgrade.upgrade(
                self.gate, ticket, proof, path=path, room=room, attempt=attempt, key_of=key_of
            )

    def create_invite(
        self,
        now_ms: int,
        entropy: bytes,
        *,
        life_ms: int = INVITE_LIFE_MS_DEFAULT,
        rooms: tuple[str, ...] | None = None,
        expected_node: NodeId | None = None,
        expected_key: Jkt | None = None,
    ) -> tuple[Invite, InviteToken]:
        """A new invite and its token, which is not kept. Raises InvalidRequest, RoomForbidden."""
        assert len(entropy) >= ENTROPY_BYTES
        if not self.gate.certificate:
            raise InvalidRequest("this node is no seed", hint="make the invite on a seed")
        if not 1 <= life_ms <= INVITE_LIFE_MS_MAX:
            raise InvalidRequest("an invite lives for more than nothing and at most 30 days")
        if expected_key is not None and not _THUMBPRINT.fullmatch(expected_key):
            raise InvalidRequest("a key is named by its thumbprint, 43 characters")
        asked = self.gate.rooms if rooms is None else rooms
        check_room_names(asked)
        token = make_invite_token(entropy)
        invite = Invite(
            id=token.id,
            secret_hash=token.secret_hash,
            rooms=check_rooms(asked, self.gate.rooms),
            expected_node=expected_node,
            expected_key=expected_key,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + life_ms,
        )
        self.gate.ledger.put_invite(invite)
        self._record_invite(AuditAction.INVITE_CREATED, invite.id, now_ms)
        return invite, token

    def join_code(self, invite: Invite, token: InviteToken, urls: tuple[str, ...]) -> JoinCode:
        """The join code for a new invite; ``urls`` are where this gateway is reached, best first."""
        return JoinCode(
            urls=urls,
            gateway_jkt=self.gate.node_key.public.jkt,
            mesh=self.gate.mesh,
            expected_node=invite.expected_node,
            expires_at_ms=invite.expires_at_ms,
            token=token,
        )

    def revoke_invite(self, name: InviteId, now_ms: int) -> Invite:
        """Take an unspent invite back; its ticket is void. Raises NotFound, TokenAlreadyUsed."""
        invite = self.gate.ledger.invite(name)
        if invite is None:
            raise NotFound(f"this node made no invite {name}", hint="list them with: gateway invites list")
        revoked = invite.after(InviteStep.REVOKE)
        if invite.reservation is not None:
            self.gate.void(invite.reservation.ticket)
        self.gate.ledger.put_invite(revoked)
        self._record_invite(AuditAction.INVITE_REVOKED, name, now_ms)
        return revoked

    def revoke_node(self, revoked: RevokedKey, now_ms: int) -> None:
        """Remember for ever that a key, or a name, was put out."""
        if revoked not in self.gate.ledger.revocations():
            self.gate.ledger.put_revocation(revoked)
            event = AuditEvent(
                at_ms=now_ms,
                action=AuditAction.NODE_REVOKED,
                node=revoked.node,
                jkt=revoked.jkt,
                subject=revoked.name,
            )
            self.gate.ledger.append_audit(event)

    def revocations(self) -> list[RevokedKey]:
        """All that this gateway has heard of: at start the state room is told of them again."""
        return self.gate.ledger.revocations()

    def invites(self) -> list[Invite]:
        """All invites ever made here, oldest first."""
        return self.gate.ledger.invites()

    def members(self) -> list[Member]:
        """All nodes admitted here and not revoked: at start their admission records come from these."""
        ledger = self.gate.ledger
        return [member for member in ledger.members() if not ledger.is_revoked(member.jkt)]

    def _begin(self, what: str, client: str, now_ms: int, entropy: bytes = bytes(ENTROPY_BYTES)) -> Attempt:
        assert len(entropy) >= ENTROPY_BYTES
        wait_ms = self._clients.take(client, now_ms)
        if wait_ms:
            raise RateLimited("too many requests from one address", retry_after_ms=wait_ms)
        return Attempt(what, client, now_ms)

    @contextmanager
    def _recording(self, attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except AuthError as error:
            # Shape errors and throttling are strangers' noise; they are counted by the endpoint, not kept.
            if error.status in {401, 403, 409}:
                self._record_routine(attempt.refusal(error))
            raise

    def _record_routine(self, event: AuditEvent) -> None:
        if not self._routine.take(event.action, event.at_ms):
            self.gate.ledger.append_audit(event)

    def _record_invite(self, action: AuditAction, name: InviteId, now_ms: int) -> None:
        self.gate.ledger.append_audit(AuditEvent(at_ms=now_ms, action=action, client=_OPERATOR, subject=name))
