"""Inputs of who wants in, and of who is invited: the engine passes them to its desk.

``req`` is numbered as in ``gateway.engine.inputs``.
"""

import msgspec

from outbox.ids import NodeId


class Exchange(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A stranger shows an invite. Answer: Ticketed."""

    req: int
    body: bytes
    client: str
    """Where it came from, for the audit."""


class Renew(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A member asks for a new ticket by its key. Answer: Ticketed."""

    req: int
    body: bytes
    client: str


class Upgrade(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Somebody opens a socket with a ticket. Answer: Admitted."""

    req: int
    ticket: str
    proof: str
    path: str
    room: str
    client: str


class Invite(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An operator invites a node. Answer: Invited."""

    req: int
    expected_node: NodeId | None = None
    expected_key: str | None = None
    """Thumbprint of the only key that may use it."""
    reads_all: bool = False
    """A mirror or a collector."""
    ttl_ms: int


class RevokeInvite(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An operator takes an invite back. Answer: Invited with its new status."""

    req: int
    invite_id: str


class KeepRevocation(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """A key is revoked, by a word that counts in the state room: keep it for ever. Answer: RevocationKept."""

    req: int
    name: str
    node: NodeId
    jkt: str
    ban: bool
    record: str
