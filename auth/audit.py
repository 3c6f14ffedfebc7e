"""The audit: append-only rows, each holding the hash of all before it. Never a secret.

``hash = SHA-256(previous hash ‖ JSON array of the other fields)``, from 32 zero bytes. Removing or changing a
row shows, unless the whole tail was rewritten by somebody who holds the database.
"""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256

import msgspec

from auth.errors import AuditBroken

GENESIS = bytes(32)


class AuditAction(StrEnum):
    """What was done."""

    INVITE_CREATED = "invite_created"
    INVITE_RESERVED = "invite_reserved"
    INVITE_CONTESTED = "invite_contested"
    INVITE_REVOKED = "invite_revoked"
    NODE_ADMITTED = "node_admitted"
    NODE_REVOKED = "node_revoked"
    TICKET_RENEWED = "ticket_renewed"
    REFUSED = "refused"


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Who, with which key, from where, did what. Unknown facts are empty."""

    at_ms: int
    action: AuditAction
    node: str = ""
    jkt: str = ""
    client: str = ""
    subject: str = ""
    """Invite id or ticket id; of a revocation where it stands."""
    detail: str = ""
    """On a refusal: what was asked for, and the code of the answer."""


class AuditRow(msgspec.Struct, frozen=True):
    """An event in its place."""

    seq: int
    event: AuditEvent
    hash: bytes


def next_row(last: AuditRow | None, event: AuditEvent) -> AuditRow:
    """The row that follows."""
    seq = last.seq + 1 if last is not None else 1
    return AuditRow(seq, event, _hash(last.hash if last is not None else GENESIS, seq, event))


def verify_audit(rows: Iterable[AuditRow]) -> int:
    """How many rows follow on from the genesis. Raises AuditBroken with the first that does not."""
    last: AuditRow | None = None
    for row in rows:
        if row != next_row(last, row.event):
            raise AuditBroken(f"audit row {row.seq} does not follow on", hint="compare with a backup")
        last = row
    return last.seq if last is not None else 0


def _hash(previous: bytes, seq: int, event: AuditEvent) -> bytes:
    return sha256(previous + msgspec.json.encode([seq, *msgspec.structs.astuple(event)])).digest()
