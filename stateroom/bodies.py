"""What the records of each map say.

==============  ============  ==================================================
map             key           body
==============  ============  ==================================================
``nodes``       node id       NodeBody: where the node is and how long its outbox
``admissions``  node id       AdmissionBody: its key and role
``agents``      agent id      AgentBody: which node owns the agent
``cursors``     node id       CursorsBody: how far the node has read the others
``forks``       node/epoch    ForkBody: proof that the node wrote two histories
``revocations`` key/signer    RevocationBody: that key belongs to the mesh no more
``presence``    node id       HeartbeatBody; travels in awareness, never stored
``activity``    node id       ActivityBody; as ``presence``
==============  ============  ==================================================

JSON, camelCase, no unknown fields. Source: the state room section of ``docs/PROTOCOL.md``.
"""

import re
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from outbox.errors import InvalidId
from outbox.ids import Epoch, NodeId, Seq, agent_id, epoch, node_id
from outbox.limits import BATCH_ENTRIES_MAX
from outbox.places import EpochName, Written
from stateroom.limits import (
    AGENTS_ACTIVE_MAX,
    CLOCK_MAX,
    CURSORS_MAX,
    ENDPOINTS_MAX,
    EPOCH_ORDINAL_MAX,
    FALLBACKS_MAX,
    GROUPS_MAX,
    LINKS_MAX,
    RECORD_CHARS_MAX,
    STANDS_MAX,
    TEXT_CHARS_MAX,
)

Count = Annotated[int, msgspec.Meta(ge=0, le=CLOCK_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_CHARS_MAX)]
Name = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9._-]{0,62}\Z")]
Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]
Leaves = Annotated[bytes, msgspec.Meta(max_length=32 * BATCH_ENTRIES_MAX)]
STANDING_BYTES = 16
"""Of the SHA-256 of a record that stands: nobody can make another one that has the same."""
Standing = Annotated[bytes, msgspec.Meta(max_length=STANDING_BYTES * STANDS_MAX)]


class RoomMap(StrEnum):
    """The maps that records belong to."""

    NODES = "nodes"
    ADMISSIONS = "admissions"
    AGENTS = "agents"
    CURSORS = "cursors"
    FORKS = "forks"
    REVOCATIONS = "revocations"
    PRESENCE = "presence"
    ACTIVITY = "activity"


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Common wire rules of all bodies."""


class FloorBody(_Body, frozen=True, kw_only=True):
    """A place in an outbox, with the chain's hash there: a reader can go on from it."""

    epoch: EpochName
    seq: Written
    hash: Digest


class NodeBody(_Body, frozen=True, kw_only=True):
    """A node about itself."""

    endpoints: Annotated[tuple[Text, ...], msgspec.Meta(max_length=ENDPOINTS_MAX)]
    """Base URLs at which its peer listener answers."""
    outbox_epoch: Annotated[str, msgspec.Meta(pattern=r"\A([0-9]{6}-[0-9a-f]{12})?\Z")]
    head_seq: Count
    head_hash: Text
    """Hex hash of the entry at ``(outbox_epoch, head_seq)``."""
    software: Text
    floor: FloorBody | None = None
    """Up to where the outbox is forgotten."""


class AdmissionBody(_Body, frozen=True, kw_only=True):
    """A seed, or the root, about a node."""

    public_key: Annotated[str, msgspec.Meta(min_length=43, max_length=43)]
    """Base64url of the raw Ed25519 key."""
    role: Literal["member", "seed"]
    invite_id: Text = ""
    reads_all: bool = False
    """A mirror or a collector: it may read what is for others, as seeds may."""


class AgentBody(_Body, frozen=True, kw_only=True):
    """The owner about its agent. Removal is a status, so that the ownership outlives it."""

    owner: Name
    owner_epoch: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    status: Literal["active", "removed"] = "active"
    handover: Annotated[str, msgspec.Meta(max_length=RECORD_CHARS_MAX)] = ""
    """The record that proves the signer's right: ``Index.proof`` of the agent. Empty for a first claim."""
    fallback: Annotated[tuple[Name, ...], msgspec.Meta(max_length=FALLBACKS_MAX)] = ()
    """Nodes that may answer for the agent, in order, when its owner is away for longer than the grace."""
    grace_ms: Count = 0
    groups: Annotated[tuple[Name, ...], msgspec.Meta(max_length=GROUPS_MAX)] = ()
    """Names under which the agent is written to together with others."""


class CursorsBody(_Body, frozen=True, kw_only=True):
    """How far a node has read: positions ``(epoch, seq)`` by source, and its own head at that moment."""

    cursors: Annotated[dict[Name, tuple[EpochName, Count]], msgspec.Meta(max_length=CURSORS_MAX)]
    head: tuple[EpochName, Count]


class SignedHead(_Body, frozen=True, kw_only=True):
    """A checkpoint; whose it is and of which epoch is in the record's key. Bytes are base64."""

    seq: Annotated[int, msgspec.Meta(ge=1, le=CLOCK_MAX)]
    hash: Digest
    signature: Signature


class ForkBody(_Body, frozen=True, kw_only=True):
    """Anybody about a node that has signed two histories of one epoch: the body proves it."""

    known: SignedHead
    other: SignedHead
    before: Digest
    """The hash of the other history at the place of ``known``."""
    leaves: Leaves = b""
    """What follows there up to ``other``, 32 bytes an entry."""


class LastPlace(_Body, frozen=True, kw_only=True):
    """A checkpoint in the outbox of the node that a revocation names. Bytes are base64."""

    epoch: EpochName
    seq: Written
    hash: Digest
    signature: Signature


class RevocationBody(_Body, frozen=True, kw_only=True):
    """A seed, or the root, about a key that belongs to the mesh no more."""

    node: Name
    """The node that was admitted with the key."""
    public_key: Annotated[str, msgspec.Meta(min_length=43, max_length=43)]
    """Base64url of the raw Ed25519 key."""
    ban: bool = False
    """The node's name may not come back either, with whatever key."""
    last: LastPlace | None = None
    """The last of its outbox that anybody takes; None: nothing that was not taken before."""
    next_epoch: Annotated[int, msgspec.Meta(ge=1, le=EPOCH_ORDINAL_MAX)]
    """The least ordinal at which a node of that name begins that comes back with another key."""
    reason: Text = ""
    stands: Standing = b""
    """Which records of the key go on counting: the first 16 bytes of the SHA-256 of each."""


class HeartbeatBody(_Body, frozen=True, kw_only=True):
    """A node is alive."""

    at_ms: Count
    """Sender's wall clock; shown, never judged."""
    links: Annotated[tuple[Name, ...], msgspec.Meta(max_length=LINKS_MAX)] = ()
    """Nodes that it has a link with."""
    endpoints: Annotated[tuple[Text, ...], msgspec.Meta(max_length=ENDPOINTS_MAX)] = ()
    digest: Text = ""
    """Hex digest of its index: a lasting difference means that replicas hold different content."""


class ActivityBody(_Body, frozen=True, kw_only=True):
    """When agents of a node last said something to it. No part of the heartbeat, which older nodes know."""

    agents: Annotated[dict[Name, Count], msgspec.Meta(max_length=AGENTS_ACTIVE_MAX)]
    """By the node's wall clock; shown, never judged."""


Body = (
    NodeBody
    | AdmissionBody
    | AgentBody
    | CursorsBody
    | ForkBody
    | RevocationBody
    | HeartbeatBody
    | ActivityBody
)

BODY_TYPES: dict[RoomMap, type[Body]] = {
    RoomMap.NODES: NodeBody,
    RoomMap.ADMISSIONS: AdmissionBody,
    RoomMap.AGENTS: AgentBody,
    RoomMap.CURSORS: CursorsBody,
    RoomMap.FORKS: ForkBody,
    RoomMap.REVOCATIONS: RevocationBody,
    RoomMap.PRESENCE: HeartbeatBody,
    RoomMap.ACTIVITY: ActivityBody,
}

IN_AWARENESS = frozenset({RoomMap.PRESENCE, RoomMap.ACTIVITY})
"""Maps whose records are in no document: they travel in awareness messages and are never stored."""

TOMBSTONES = frozenset({RoomMap.NODES, RoomMap.CURSORS})
"""Maps whose records their owner may delete; an agent is removed by status, an admission not at all."""

Position = tuple[Epoch, Seq]

_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


ROOT = "root"
"""The signer of seed certificates: the mesh root key. So no node may have this name."""


def check_key(room_map: RoomMap, key: str) -> None:
    """Raise InvalidId unless the key is a legal name for that map."""
    if room_map is RoomMap.AGENTS:
        agent_id(key)
    elif room_map is RoomMap.FORKS:
        parse_fork_key(key)
    elif room_map is RoomMap.REVOCATIONS:
        parse_revocation_key(key)
    elif node_id(key) == ROOT:
        raise InvalidId("node", key, suggestion="root-node")


def fork_key(node: NodeId, of: Epoch) -> str:
    """Where the fork of one epoch of a node stands."""
    return f"{node}/{of}"


def parse_fork_key(key: str) -> tuple[NodeId, Epoch]:
    """The node and the epoch. Raises InvalidId."""
    node, _, of = key.partition("/")
    return node_id(node), epoch(of)


def revocation_key(thumbprint: str, signer: str) -> str:
    """Where one signer's word about a key stands: nobody overwrites that of another."""
    return f"{thumbprint}/{signer}"


def parse_revocation_key(key: str) -> tuple[str, str]:
    """The thumbprint of the revoked key, and who says so. Raises InvalidId."""
    of, _, signer = key.partition("/")
    if not _THUMBPRINT.fullmatch(of):
        raise InvalidId("key", key)
    return of, node_id(signer)


def position(pair: tuple[str, int]) -> Position:
    """A checked wire pair as a position."""
    return Epoch(pair[0]), Seq(pair[1])
