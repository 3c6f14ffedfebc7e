"""Answers to the operator."""

import msgspec

from auth.invites import InviteStatus
from outbox.ids import AgentId, Epoch, NodeId, Seq


class AgentAdded(msgspec.Struct, frozen=True, rename="camel"):
    """The agent lives here now; its token is in the file, and in no answer."""

    name: AgentId
    token_file: str
    unknown: tuple[NodeId, ...] = ()
    """Fallback nodes that the mesh has never heard of: misspelt, or yet to join."""


class AgentRemoved(msgspec.Struct, frozen=True):
    """The agent is gone."""

    name: AgentId


class AgentSet(msgspec.Struct, frozen=True, rename="camel"):
    """What the agent's record says now."""

    name: AgentId
    fallback: tuple[NodeId, ...]
    grace_ms: int
    groups: tuple[str, ...]
    unknown: tuple[NodeId, ...] = ()
    """As in ``AgentAdded``."""


class DeadPruned(msgspec.Struct, frozen=True):
    """So many dead letters left the list."""

    count: int


class IncidentsClosedAnswer(msgspec.Struct, frozen=True):
    """So many incidents are closed."""

    count: int


class PrunedAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Where the outbox begins now, and what is left of it."""

    floor_seq: Seq
    entries: int
    bytes: int
    more: bool
    """More may go than one request forgets: ask again."""


class InviteAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The only time that the secret is shown."""

    invite_id: str
    join_code: str
    expires_at: str


class InviteRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One invite, without its secret."""

    invite_id: str
    status: InviteStatus
    node: NodeId | None
    """Which node may use it; None: any."""
    reads_all: bool = False
    """Whether that node may then read what is for others."""
    created_at: str
    expires_at: str


class DoubtsEnded(msgspec.Struct, frozen=True):
    """Answer of ``POST /v1/doubts/end``: whose answer is no longer waited for."""

    nodes: tuple[NodeId, ...]


class RevocationAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A node that belongs to the mesh no more."""

    node: NodeId
    key: str
    """Its public key, Ed25519 in base64url: that is what was revoked."""
    ban: bool
    """The name may not come back either, with whatever key."""
    by: str
    """The seed that has signed it, or ``root``."""
    reason: str
    last_epoch: Epoch | None
    """The epoch of the last place in its outbox that anybody takes; None: nothing more is taken."""
    last_seq: Seq
