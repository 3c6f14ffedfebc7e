"""What a gateway must remember to let a secret be used once: the ledger, as the gatekeeper sees it.

Two implementations pass the same tests: ``auth.sqlite_ledger.SqliteLedger`` and
``auth.memory_ledger.MemoryLedger``. All calls happen inside a transaction that the owner of the database
opened; the ledger never commits. Reads see the writes of that transaction. Methods raise StorageFull or
StorageFailed; the owner then rolls back.
"""

from typing import Protocol

from auth.audit import AuditEvent, AuditRow
from auth.challenges import Nonce
from auth.invites import Invite, InviteId
from auth.keys import Jkt
from auth.members import Member, RevokedKey
from auth.tickets import Ticket
from outbox.ids import NodeId


class Ledger(Protocol):
    """Invites, consumed nonces, tickets, members and the audit."""

    def invite(self, name: InviteId) -> Invite | None:
        """One invite, whatever its status: rows outlive the node that joined."""
        ...

    def put_invite(self, invite: Invite) -> None:
        """Insert or replace it."""
        ...

    def invites(self) -> list[Invite]:
        """All of them, oldest first."""
        ...

    def nonce_consumed(self, nonce: Nonce) -> bool:
        """Whether it was used before."""
        ...

    def consume_nonce(self, nonce: Nonce) -> None:
        """Remember it until it expires."""
        ...

    def nonces_held(self) -> int:
        """How many are remembered."""
        ...

    def ticket(self, jti: str) -> Ticket | None:
        """One ticket that has not been pruned."""
        ...

    def put_ticket(self, ticket: Ticket) -> None:
        """Insert or replace it."""
        ...

    def tickets_held(self) -> int:
        """How many are remembered."""
        ...

    def member(self, node: NodeId) -> Member | None:
        """The member of that name."""
        ...

    def member_by_key(self, jkt: Jkt) -> Member | None:
        """The member with that key."""
        ...

    def put_member(self, member: Member) -> None:
        """Insert or replace it."""
        ...

    def members(self) -> list[Member]:
        """All of them, by name."""
        ...

    def put_revocation(self, revoked: RevokedKey) -> None:
        """Insert or replace it. It is never pruned."""
        ...

    def revocations(self) -> list[RevokedKey]:
        """All of them, by name."""
        ...

    def is_revoked(self, jkt: Jkt) -> bool:
        """Whether a key is."""
        ...

    def is_banned(self, node: NodeId) -> bool:
        """Whether a node name may not come back with any key."""
        ...

    def prune(self, now_ms: int) -> None:
        """Forget nonces and tickets that have expired: their own text says so to whoever shows them."""
        ...

    def append_audit(self, event: AuditEvent) -> AuditRow:
        """Add the next row of the chain."""
        ...

    def audit(self, after_seq: int, limit: int) -> list[AuditRow]:
        """Rows in order, after a sequence number."""
        ...
