"""The joiner: the other side of the gatekeeper, without a socket.

::

    challenge ──body──▶ gateway ──answer──▶ accept ──▶ Trusted ──▶ exchange | renew ──▶ ticket
                                                              upgrade_headers ◀──┘

A request that holds the invite token needs a ``Trusted`` value, and only ``accept`` makes one, after the
server has proved to be the gateway of the join code. So the token cannot leave before that. Randomness and
time are arguments; ``now_ms`` only goes into ``iat``, which nobody judges.
"""

from typing import ClassVar

import msgspec

from auth.errors import AuthError, WrongGateway
from auth.gateway_proofs import KnownGateway, Pin, check_gateway_proof
from auth.invites import InviteToken
from auth.joincodes import JoinCode
from auth.keys import SigningKey
from auth.limits import ENTROPY_BYTES
from auth.messages import (
    EXCHANGE_PATH,
    PROOF_HEADER,
    RENEW_PATH,
    STATE_ROOM,
    TICKET_SCHEME,
    ChallengeAnswer,
    ChallengeRequest,
    ExchangeRequest,
    RenewRequest,
    TicketAnswer,
    encode_message,
    read_answer,
)
from auth.proofs import RequestProof, SocketProof, sign_proof, ticket_hash
from auth.redacted import Redacted
from outbox import base64url
from outbox.errors import InvalidId
from outbox.ids import NodeId, node_id


class Asked(msgspec.Struct, frozen=True):
    """A challenge that is on its way."""

    pin: Pin
    client_nonce: str


class Trusted(Redacted, frozen=True):
    """A gateway that has proved who it is, and its nonce for one request."""

    shown: ClassVar[tuple[str, ...]] = ("gateway",)
    gateway: KnownGateway
    nonce: str


def pin_of(code: JoinCode) -> Pin:
    """The gateway that a join code names: that very key, and a seed of that mesh."""
    return Pin(mesh=code.mesh, jkt=code.gateway_jkt)


class Joiner:
    """One node that joins or renews."""

    def __init__(self, node: NodeId, key: SigningKey) -> None:
        self.node = node
        self._key = key

    def challenge(self, pin: Pin, entropy: bytes) -> tuple[bytes, Asked]:
        """The body for ``CHALLENGE_PATH``, and what to check its answer with."""
        assert len(entropy) >= ENTROPY_BYTES
        asked = Asked(pin, base64url.encode(entropy[:32]))
        return encode_message(ChallengeRequest(node_id=self.node, client_nonce=asked.client_nonce)), asked

    def accept(self, asked: Asked, body: bytes) -> Trusted:
        """Judge the answer to a challenge. Raises WrongGateway."""
        try:
            answer = read_answer(body, ChallengeAnswer)
            gateway = node_id(answer.gateway_id)
        except (AuthError, InvalidId):
            raise WrongGateway("the answer is not that of a gateway", hint="check the address") from None
        known = check_gateway_proof(
            answer.gateway_proof,
            asked.pin,
            client_nonce=asked.client_nonce,
            node=self.node,
            nonce=answer.nonce,
            gateway=gateway,
        )
        return Trusted(known, answer.nonce)

    def exchange(
        self, trusted: Trusted, token: InviteToken, now_ms: int, rooms: tuple[str, ...] = (STATE_ROOM,)
    ) -> bytes:
        """The body for ``EXCHANGE_PATH``."""
        request = ExchangeRequest(
            invite_token=token.text, node_id=self.node, nonce=trusted.nonce, requested_rooms=rooms
        )
        proof = self._prove(trusted, EXCHANGE_PATH, request.proof_hash(), now_ms)
        return encode_message(msgspec.structs.replace(request, node_proof=proof))

    def renew(self, trusted: Trusted, now_ms: int, rooms: tuple[str, ...] = (STATE_ROOM,)) -> bytes:
        """The body for ``RENEW_PATH``."""
        request = RenewRequest(node_id=self.node, nonce=trusted.nonce, requested_rooms=rooms)
        proof = self._prove(trusted, RENEW_PATH, request.proof_hash(), now_ms)
        return encode_message(msgspec.structs.replace(request, node_proof=proof))

    def ticket(self, body: bytes) -> TicketAnswer:
        """The answer to an exchange or renewal. Raises WrongGateway when it is none."""
        try:
            return read_answer(body, TicketAnswer)
        except AuthError:
            raise WrongGateway("the answer holds no ticket", hint="check the address") from None

    def upgrade_headers(self, gateway: NodeId, ticket: str, path: str, now_ms: int) -> dict[str, str]:
        """The two headers that open the socket at ``path``; they are never put in a URL."""
        claims = SocketProof(
            htu=path, ath=ticket_hash(ticket), node=self.node, gw=gateway, iat=now_ms // 1000
        )
        return {"Authorization": f"{TICKET_SCHEME} {ticket}", PROOF_HEADER: sign_proof(claims, self._key)}

    def _prove(self, trusted: Trusted, path: str, rh: str, now_ms: int) -> str:
        claims = RequestProof(
            htu=path,
            nonce=trusted.nonce,
            node=self.node,
            gw=trusted.gateway.node,
            rh=rh,
            iat=now_ms // 1000,
        )
        return sign_proof(claims, self._key)
