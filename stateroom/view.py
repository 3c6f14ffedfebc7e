"""What the rest of the program sees of the state room: one immutable picture with a version.

A View is made by ``Index.view``; it never changes afterwards, may cross threads and processes, and survives
``msgspec.json``. All look-ups are dictionary reads.
"""

from typing import Literal

import msgspec

from outbox.chain import Checkpoint, Head
from outbox.ids import AgentId, Epoch, MeshId, NodeId, Seq, epoch_ordinal

Position = tuple[Epoch, Seq]


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted node. The parts from its own record are empty until it has published one."""

    node: NodeId
    public_key: bytes
    """Raw Ed25519 key, 32 bytes."""
    role: Literal["member", "seed"]
    reads_all: bool = False
    """Its admission names it a mirror or a collector."""
    endpoints: tuple[str, ...] = ()
    outbox_epoch: Epoch | None = None
    head_seq: Seq = Seq(0)
    head_hash: str = ""
    software: str = ""
    floor: Head | None = None
    """Up to where the node has forgotten its outbox."""
    online: bool = False
    last_seen_ms: int | None = None
    """When its last heartbeat came, by our clock."""
    links: tuple[NodeId, ...] = ()
    """Nodes that it says it has a link with."""


class OwnerView(msgspec.Struct, frozen=True, kw_only=True):
    """Which node owns an agent."""

    agent: AgentId
    node: NodeId
    owner_epoch: int
    status: Literal["active", "removed"]
    fallback: tuple[NodeId, ...] = ()
    """Nodes that may answer for it, in order, when its owner is away for longer than the grace."""
    grace_ms: int = 0
    groups: tuple[str, ...] = ()
    """Groups that it belongs to."""


class CursorsView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a node has read the others, and its own head at that moment."""

    cursors: dict[NodeId, Position]
    head: Position


class ForkView(msgspec.Struct, frozen=True, kw_only=True):
    """A node has provably signed two histories of one epoch: nobody reads that epoch any further."""

    epoch: Epoch
    seq: Seq
    """A place at which the two disagree; they may have parted before."""


class RevocationView(msgspec.Struct, frozen=True, kw_only=True):
    """A key that belongs to the mesh no more."""

    node: NodeId
    public_key: bytes
    ban: bool
    """The name may not come back either."""
    by: str
    """A seed, or ``root``."""
    reason: str
    last: Checkpoint | None
    """The last of its outbox that anybody takes; None: nothing."""
    next_epoch: int
    """Where the outbox of a node begins at least that comes back under the name with another key."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The mesh as this node knows it. A higher version is a later picture of the same process."""

    version: int
    mesh: MeshId
    nodes: dict[NodeId, NodeView]
    agents: dict[AgentId, OwnerView]
    """Every agent ever seen, removed ones too."""
    cursors: dict[NodeId, CursorsView]
    forks: dict[NodeId, tuple[ForkView, ...]] = msgspec.field(default_factory=dict)
    """Proven forks by node, in order of their epochs."""
    revocations: dict[NodeId, tuple[RevocationView, ...]] = msgspec.field(default_factory=dict)
    """Revoked keys by the node that had them, in the order in which it had them."""

    def node(self, node: NodeId) -> NodeView | None:
        """An admitted node."""
        return self.nodes.get(node)

    def owner(self, agent: AgentId) -> OwnerView | None:
        """Who owns an agent now; None for an unknown or removed one."""
        owner = self.agents.get(agent)
        return owner if owner is not None and owner.status == "active" else None

    def known(self, agent: AgentId) -> bool:
        """Whether the mesh has ever heard of this agent."""
        return agent in self.agents

    def reads_all(self, node: NodeId) -> bool:
        """Whether a node may read the bodies of events that are not for it: a seed, a mirror, a collector."""
        found = self.nodes.get(node)
        return found is not None and (found.reads_all or found.role == "seed")

    def online(self, node: NodeId) -> bool:
        """Whether a heartbeat of that node came lately."""
        found = self.nodes.get(node)
        return found is not None and found.online

    def cursor(self, reader: NodeId, source: NodeId) -> Position | None:
        """How far ``reader`` says it has read the outbox of ``source``."""
        found = self.cursors.get(reader)
        return found.cursors.get(source) if found is not None else None

    def forked(self, node: NodeId, epoch: Epoch) -> bool:
        """Whether a node has provably written two histories of this epoch."""
        return any(fork.epoch == epoch for fork in self.forks.get(node, ()))

    def revoked(self, node: NodeId) -> RevocationView | None:
        """How a node was put out; None for one that is admitted, or never was."""
        known = self.revocations.get(node) if node not in self.nodes else None
        return known[-1] if known else None

    def ended(self, node: NodeId, epoch: Epoch) -> RevocationView | None:
        """The revocation of the key that an epoch of a node's outbox was signed with."""
        known = self.revocations.get(node, ())
        ordinal = epoch_ordinal(epoch) if known else 0
        under = next((word for word in known if ordinal < word.next_epoch), None)
        return under or self.revoked(node)

    def peers(self, self_id: NodeId) -> list[NodeView]:
        """All admitted nodes but ourselves, by name."""
        return [self.nodes[node] for node in sorted(self.nodes) if node != self_id]
