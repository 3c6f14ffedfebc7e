"""The ledger's twin in memory: dictionaries, for tests and simulation. It has no rollback."""

from auth.audit import AuditEvent, AuditRow, next_row
from auth.challenges import Nonce
from auth.invites import Invite, InviteId
from auth.keys import Jkt
from auth.members import Member, RevokedKey
from auth.tickets import Ticket
from outbox.ids import NodeId


class MemoryLedger:
    """See ``auth.ledger.Ledger``."""

    def __init__(self) -> None:
        self._invites: dict[InviteId, Invite] = {}
        self._nonces: dict[bytes, Nonce] = {}
        self._tickets: dict[str, Ticket] = {}
        self._members: dict[NodeId, Member] = {}
        self._revocations: dict[str, RevokedKey] = {}
        self._audit: list[AuditRow] = []

    def invite(self, name: InviteId) -> Invite | None:
        """One invite."""
        return self._invites.get(name)

    def put_invite(self, invite: Invite) -> None:
        """Insert or replace it."""
        self._invites[invite.id] = invite

    def invites(self) -> list[Invite]:
        """All of them, oldest first."""
        return sorted(self._invites.values(), key=lambda invite: (invite.created_at_ms, invite.id))

    def nonce_consumed(self, nonce: Nonce) -> bool:
        """Whether it was used before."""
        return nonce.id in self._nonces

    def consume_nonce(self, nonce: Nonce) -> None:
        """Remember it until it expires."""
        self._nonces[nonce.id] = nonce

    def nonces_held(self) -> int:
        """How many are remembered."""
        return len(self._nonces)

    def ticket(self, jti: str) -> Ticket | None:
        """One ticket that has not been pruned."""
        return self._tickets.get(jti)

    def put_ticket(self, ticket: Ticket) -> None:
        """Insert or replace it."""
        self._tickets[ticket.jti] = ticket

    def tickets_held(self) -> int:
        """How many are remembered."""
        return len(self._tickets)

    def member(self, node: NodeId) -> Member | None:
        """The member of that name."""
        return self._members.get(node)

    def member_by_key(self, jkt: Jkt) -> Member | None:
        """The member with that key."""
        return next((member for member in self._members.values() if member.jkt == jkt), None)

    def put_member(self, member: Member) -> None:
        """Insert or replace it."""
        self._members[member.node] = member

    def members(self) -> list[Member]:
        """All of them, by name."""
        return [self._members[node] for node in sorted(self._members)]

    def put_revocation(self, revoked: RevokedKey) -> None:
        """Insert or replace it."""
        self._revocations[revoked.name] = revoked

    def revocations(self) -> list[RevokedKey]:
        """All of them, by name."""
        return [self._revocations[name] for name in sorted(self._revocations)]

    def is_revoked(self, jkt: Jkt) -> bool:
        """Whether a key is."""
        return any(revoked.jkt == jkt for revoked in self._revocations.values())

    def is_banned(self, node: NodeId) -> bool:
        """Whether a node name may not come back with any key."""
        return any(revoked.ban and revoked.node == node for revoked in self._revocations.values())

    def prune(self, now_ms: int) -> None:
        """Forget nonces and tickets that have expired."""
        self._nonces = {key: nonce for key, nonce in self._nonces.items() if nonce.expires_at_ms > now_ms}
        self._tickets = {
            jti: ticket for jti, ticket in self._tickets.items() if ticket.expires_at_s * 1000 > now_ms
        }

    def append_audit(self, event: AuditEvent) -> AuditRow:
        """Add the next row of the chain."""
        row = next_row(self._audit[-1] if self._audit else None, event)
        self._audit.append(row)
        return row

    def audit(self, after_seq: int, limit: int) -> list[AuditRow]:
        """Rows in order, after a sequence number."""
        return self._audit[after_seq : after_seq + limit]
