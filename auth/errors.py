"""Every refusal of the joining protocol, as branches of the mesh's error tree.

::

    CallerError
    └── AuthError                      status code
        ├── InvalidRequest             400    invalid_request       shape of a body, a text or a field
        │   ├── InvalidKey             400    invalid_key           not a public key we would ever register
        │   └── InvalidJws             400    invalid_jws           not a token of that kind by that key
        ├── RequestTooLarge            413    too_large
        ├── InvalidToken               401    invalid_token         invite or local bearer token
        ├── ExpiredToken               401    expired_token
        ├── NodeMismatch               403    node_mismatch         name, key or proof is not the right one
        ├── KeyRevoked                 403    node_revoked          the key, or the name with any key
        ├── RoomForbidden              403    room_forbidden
        ├── TokenAlreadyUsed           409    token_already_used
        ├── ReplayDetected             409    replay_detected
        ├── InvalidTicket              401    invalid_ticket
        ├── ExpiredTicket              401    expired_ticket
        ├── TicketAlreadyUsed          409    ticket_already_used
        ├── RateLimited                429    rate_limited
        └── BadJoinCode                400    bad_join_code         joiner: the code is damaged or unsafe
    PeerError
    └── WrongGateway                          wrong_gateway         joiner: not who the join code names
    WorldError
    ├── KeyFileUnsafe                         key_file_unsafe
    ├── KeyFileDamaged                        key_file_damaged
    └── AuditBroken                           audit_broken

``status`` is the HTTP status that the endpoints answer with. InvalidKey and InvalidJws stay inside: the
gatekeeper turns them into the refusal that belongs to the step it is in. No message holds what was sent.
"""

from typing import ClassVar

from outbox.errors import CallerError, PeerError, WorldError


class AuthError(CallerError):
    """A request to join, renew or open a socket was refused."""

    status: ClassVar[int] = 400


class InvalidRequest(AuthError):
    """Bytes, fields or names do not have the shape that the protocol asks for."""

    code = "invalid_request"


class InvalidKey(InvalidRequest):
    """Not an Ed25519 public key in canonical form and of prime order."""

    code = "invalid_key"


class InvalidJws(InvalidRequest):
    """Not a token of the expected kind, signed by the expected key."""

    code = "invalid_jws"


class RequestTooLarge(AuthError):
    """The body is above its limit."""

    code = "too_large"
    status = 413


class InvalidToken(AuthError):
    """No such token, a wrong secret, or revoked: the three are not told apart."""

    code = "invalid_token"
    status = 401


class ExpiredToken(AuthError):
    """The invite's time has passed by the issuer's clock."""

    code = "expired_token"
    status = 401


class NodeMismatch(AuthError):
    """The node name, its key or its proof is not the one that this invite, ticket or name belongs to."""

    code = "node_mismatch"
    status = 403


class KeyRevoked(AuthError):
    """The key belongs to the mesh no more, or the name may not be used again."""

    code = "node_revoked"
    status = 403


class RoomForbidden(AuthError):
    """A room outside what the invite, the ticket or the membership opens."""

    code = "room_forbidden"
    status = 403


class TokenAlreadyUsed(AuthError):
    """The invite is spent, contested, or reserved by somebody else or for something else."""

    code = "token_already_used"
    status = 409


class ReplayDetected(AuthError):
    """The nonce is not ours, too old, or was consumed before; ask for a new challenge."""

    code = "replay_detected"
    status = 409
    retryable = True


class InvalidTicket(AuthError):
    """Not a ticket of this gateway and this start, or a voided one."""

    code = "invalid_ticket"
    status = 401


class ExpiredTicket(AuthError):
    """The ticket's 45 seconds are over."""

    code = "expired_ticket"
    status = 401


class TicketAlreadyUsed(AuthError):
    """The ticket opened a socket before."""

    code = "ticket_already_used"
    status = 409


class RateLimited(AuthError):
    """Too many requests from one place, or too many tickets in flight."""

    code = "rate_limited"
    status = 429
    retryable = True

    def __init__(self, what: str, *, retry_after_ms: int) -> None:
        super().__init__(what, hint="wait, then try again")
        self.retry_after_ms = retry_after_ms


class BadJoinCode(AuthError):
    """The join code is damaged, of another version, for an address that we do not call, or names no node."""

    code = "bad_join_code"


class WrongGateway(PeerError):
    """The server did not prove to be the gateway that was asked for; the token was not sent."""

    code = "wrong_gateway"


class KeyFileUnsafe(WorldError):
    """A key file or its directory can be read by others."""

    code = "key_file_unsafe"
    retryable = False


class KeyFileDamaged(WorldError):
    """A key file is missing, or does not hold the key that its name says."""

    code = "key_file_damaged"
    retryable = False


class AuditBroken(WorldError):
    """The audit's hash chain does not hold: rows were altered or removed."""

    code = "audit_broken"
    retryable = False
