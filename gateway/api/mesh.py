"""The mesh as one node sees it, and that node itself."""

from enum import StrEnum
from typing import Literal

import msgspec

from outbox.ids import AgentId, Epoch, MeshId, NodeId, Seq


class LinkState(StrEnum):
    """How a link to another node stands."""

    UP = "up"
    CONNECTING = "connecting"
    DOWN = "down"


class LinkStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One link to another node."""

    node: NodeId
    state: LinkState
    since_ms: int
    """Since when it stands like this; milliseconds since 1970."""
    last_error: str = ""
    dialled_by: Literal["us", "them"] = "us"
    clock_ahead_ms: int | None = None
    """How far the other node's wall clock is ahead of ours, as this link has measured it."""
    clock_within_ms: int | None = None
    """By how much that may be wrong: half a round trip."""


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What only the assembled gateway knows about itself."""

    software: str
    pid: int
    started_at_ms: int
    engine_host: Literal["inline", "process"] = "inline"
    """Whether the journal is written in this process, or in one of its own."""
    endpoints: tuple[str, ...] = ()
    """URLs by which other nodes reach this one."""
    local: tuple[str, ...] = ()
    """Where agents reach this gateway: the path of its Unix socket, and its loopback URL if it has one."""
    room_loaded: bool = True
    standing: str = "proven"
    """How the own outbox stands: ``alone`` and ``proven`` are shown to others, else it is held back."""
    awaited: tuple[NodeId, ...] = ()
    """Nodes that have to say what was done for them before this node forgot it."""
    revoked: str = ""
    """By whom, and why, the key of this node was revoked; empty: it was not."""
    forked: tuple[str, ...] = ()
    """Outboxes, ``node/epoch``, that are read no further since their node wrote two histories."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Own events that nobody has accepted yet, and what they wait for."""

    node: NodeId | None
    """Where they go; None while their agents have no owner."""
    state: str
    """``waiting_for_owner``, ``waiting_for_link``, or ``emitted``: nothing is in their way."""
    count: int


class StatusAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One node at a glance."""

    node: NodeId
    mesh: MeshId
    epoch: Epoch
    head_seq: Seq
    floor_seq: Seq
    """Up to where the current epoch of the outbox is forgotten."""
    process: NodeStatus
    ready: bool
    storage_full: bool
    deliveries: dict[str, int]
    """Own obligations by state."""
    waiting: list[Waiting]
    received: dict[str, int]
    """Turns by state."""
    agents: int
    active: dict[AgentId, int] = {}
    """When agents here last said something, since this process began."""
    links: list[LinkStatus]
    incidents_open: int
    quarantined: int


class MaintenanceRow(msgspec.Struct, frozen=True, rename="camel"):
    """A node has said that it will be away."""

    since_ms: int
    until_ms: int | None
    """None: until it says that it is over."""
    detail: str


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One node of the mesh."""

    node: NodeId
    key: str
    """Its public key, Ed25519 in base64url: what its outbox is checked with."""
    role: str
    reads_all: bool
    """It may read what is for others: a seed, a mirror, a collector."""
    here: bool
    online: bool
    last_seen_ms: int | None
    link: LinkState | None
    """How our link to it stands; None for ourselves."""
    clock_ahead_ms: int | None
    """How far its wall clock is ahead of ours; None while no link has measured it."""
    endpoints: tuple[str, ...]
    head_seq: Seq
    read_seq: Seq | None
    """How far we have read its outbox."""
    lag: int | None
    """Own events that it has not said to have read; None when it has said nothing."""
    maintenance: MaintenanceRow | None = None
    """What it has announced and not ended; past its time as well."""
    revoked: Literal["", "evicted", "banned"] = ""
    """Its key belongs to the mesh no more; when banned its name may not come back either."""
    reason: str = ""
    """Why, and by whom."""


class AgentRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One agent of the mesh."""

    name: AgentId
    node: NodeId | None
    """Its owner; None when it was removed."""
    status: Literal["active", "removed"]
    online: bool
    here: bool
    fallback: tuple[NodeId, ...] = ()
    """Nodes that may answer for it, in order, when its owner is away for longer than ``grace_ms``."""
    grace_ms: int = 0
    groups: tuple[str, ...] = ()
    last_active_ms: int | None = None
    """When it last said something to its gateway, as well as the clock of that is known here; None when that
    has not told, or has heard nothing since it started."""
