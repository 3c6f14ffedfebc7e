"""The rows a gateway keeps beside its outbox, as the engine sees them.

Times are milliseconds since 1970. ``*_at_ms`` named after a remote fact carries the remote clock's value; the
others are this node's clock.
"""

from enum import StrEnum

import msgspec

from outbox.blobref import BlobId
from outbox.ids import AgentId, Epoch, EventId, MeshId, NodeId, Seq
from outbox.kinds import Outcome


class Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of a table: packed it is its fields in their order."""


class Identity(msgspec.Struct, frozen=True):
    """Whose journal this is."""

    mesh: MeshId
    node: NodeId
    epoch: Epoch


class EpochRow(Record, frozen=True):
    """An epoch of the own outbox that is shown only so far."""

    ordinal: int
    epoch: Epoch
    shown: Seq


class Doubt(Record, frozen=True):
    """A node that has to say what of its events was dealt with here, since an own epoch began."""

    source: NodeId
    epoch: Epoch


class Errand(Record, frozen=True):
    """Something that is too much for one tick: kept until all of it is done."""

    kind: str
    subject: str
    """An agent, a node, an epoch. There is one errand a kind and subject; a later one takes its place."""
    detail: str = ""
    """What is to be done, as its kind writes it."""


class DeliveryState(StrEnum):
    """States of the sender's side; the steps between them are in ``outbox.delivery``."""

    EMITTED = "emitted"
    RETRY_PENDING = "retry_pending"
    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"
    """A later attempt went to another node: what this one still says is recorded, no more."""
    PROCESSED = "processed"
    REPLIED = "replied"
    DEAD_LETTER = "dead_letter"


class Delivery(Record, frozen=True, gc=False, kw_only=True):
    """The sender's obligation for one event at one node: one or more for each deliverable event.

    Several when a later attempt went to another node (those before are superseded), or when the event is for
    the agents of several nodes.
    """

    event_id: EventId
    kind: str
    from_agent: AgentId
    to_agent: AgentId
    """The agent; of an event to several their address as it was given."""
    node: NodeId | None
    """Where it was routed; None while the agent has no owner."""
    state: DeliveryState
    attempt: int = 1
    """Number of the last attempt that went to this node; the attempts of one event are numbered together."""
    seq: Seq
    """Position of that attempt in the own outbox (current epoch)."""
    thread_id: str
    emitted_at_ms: int
    """When the last attempt was appended."""
    created_at_ms: int
    expires_at_ms: int
    next_at_ms: int | None
    """When the timer of this row fires; None when nothing is due any more."""
    accepted_at_ms: int | None = None
    engaged_at_ms: int | None = None
    processed_at_ms: int | None = None
    replied_at_ms: int | None = None
    dead_at_ms: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    tries: int = 1
    """Attempts on account of this obligation, wherever they went: what the bound of attempts looks at."""
    accepted_epoch: Epoch | None = None
    accepted_seq: Seq | None = None
    """Where ``accepted`` stands in the outbox of ``node``: a restored node may have lost it."""
    redriven_as: EventId | None = None
    """Of a dead letter: the new event by which an operator sent it again."""
    dismissed_at_ms: int | None = None
    """Of a dead letter: when an operator had seen enough of it."""
    via: NodeId | None = None
    """Which relay brought the latest answer; None when its writer did."""
    reply: EventId | None = None
    """The reply of this node that the agent was given; None where only one node was asked."""
    eta_at_ms: int | None = None
    """When its agent expects to be done, as it said last; by the clock of ``node``."""
    plan_summary: str | None = None
    """What its agent is about to do."""
    ended_by: EventId | None = None
    """The first terminal ACK of ``node``: should that node forget it, it may end the turn once more."""


class TurnState(StrEnum):
    """States of the receiver's side of one event."""

    HELD = "held"
    """Accepted; not handed over yet, since the sender's ownership is not known here yet."""
    QUEUED = "queued"
    """Accepted, in the agent's inbox."""
    LEASED = "leased"
    """Handed to a session of the agent, unacknowledged."""
    DONE = "done"
    """Its terminal ACK is in the outbox (or, for a reply, the agent has acknowledged it here)."""


class Share(StrEnum):
    """What part of an event one agent's turn is; the terminal ACK speaks for all turns but late ones."""

    SOLE = "sole"
    """The event is for this agent alone."""
    ONE_OF_SEVERAL = "one_of_several"
    """It names several agents."""
    EVERYONE = "everyone"
    """A broadcast: it names a node and means all who live there."""
    LATE = "late"
    """A broadcast that was there before the agent was; nobody waits for its end."""


class Received(Record, frozen=True, gc=False, kw_only=True):
    """Ledger row and inbox row in one: what one local agent did about an event that came for it."""

    event_id: EventId
    source: NodeId
    epoch: Epoch
    seq: Seq
    kind: str
    to_agent: AgentId
    body: bytes
    state: TurnState
    priority: int = 2
    accepted_at_ms: int
    expires_at_ms: int
    delivery_count: int = 0
    lease_id: str | None = None
    session: str | None = None
    engaged_at_ms: int | None = None
    """First hand-over."""
    done_at_ms: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    share: Share = Share.SOLE
    via: NodeId | None = None
    """Which relay brought it; None when its writer did."""
    blob: BlobId | None = None
    """What its event names: the turn is not dealt before it is here."""


class LocalAgent(Record, frozen=True, kw_only=True):
    """An agent that lives here."""

    name: AgentId
    owner_epoch: int
    token_hash: bytes
    """SHA-256 of its bearer token."""
    created_at_ms: int
    fallback: str = ""
    """Nodes that may stand in for it, in order, with commas between."""
    grace_ms: int = 0
    """How long its owner must be away before one of them does."""
    groups: str = ""
    """Groups that it belongs to, with commas between."""
    stands_in_for: str = ""
    """The node that owns it, where this one is a fallback; empty where it lives."""

    @property
    def fallbacks(self) -> tuple[NodeId, ...]:
        """``fallback`` as names."""
        return tuple(NodeId(node) for node in self.fallback.split(",") if node)

    @property
    def member_of(self) -> tuple[str, ...]:
        """``groups`` as names."""
        return tuple(group for group in self.groups.split(",") if group)


class Incident(Record, frozen=True, kw_only=True):
    """Something an operator should know; open until ``closed_at_ms`` is set. One row per (kind, subject)."""

    kind: str
    subject: str
    """Event id, node or stream that it is about."""
    opened_at_ms: int
    closed_at_ms: int | None = None
    detail: str = ""


class Quarantined(Record, frozen=True, kw_only=True):
    """A well-chained entry that is no valid event; kept for the operator, the cursor moved on."""

    source: NodeId
    epoch: Epoch
    seq: Seq
    reason: str
    header: bytes
    body: bytes


class Remembered(Record, frozen=True, gc=False, kw_only=True):
    """What an idempotency key was used for."""

    agent: AgentId
    key: str
    request_hash: bytes
    event_id: EventId


class Reader(Record, frozen=True, kw_only=True):
    """Another node that reads this outbox: what it has not read is kept, as long as it shows itself."""

    node: NodeId
    epoch: Epoch
    """Of this outbox; so is ``seq``."""
    seq: Seq
    unseen_ms: int = 0
    """How long this gateway has run since it saw it alive, or move its cursor: no clock that may jump."""


class LedgerFloor(Record, frozen=True, kw_only=True):
    """Up to where finished turns of another outbox were forgotten."""

    source: NodeId
    epoch: Epoch
    seq: Seq


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one checkpoint of the own outbox covers."""

    epoch: Epoch
    seq: Seq
    """Of its last entry."""
    entries: int
    bytes: int
    event_id: EventId
    """Of its last entry."""


class OutboxSize(msgspec.Struct, frozen=True):
    """What lies above the floor."""

    entries: int
    bytes: int


class Copy(Record, frozen=True, kw_only=True):
    """A verified copy of a stretch of another node's outbox."""

    source: NodeId
    epoch: Epoch
    number: int
    """Of the copy, in this journal."""
    first: Seq
    last: Seq
    hash: bytes
    """Of the chain after ``last``."""
    signature: bytes
    """Of the checkpoint there."""
    bytes: int
    oldest_at_ms: int
    """When its first batch was copied."""


class Blob(Record, frozen=True, kw_only=True):
    """A whole blob in the home."""

    sha256: BlobId
    bytes: int
    stored_at_ms: int
    """When it was stored, or last asked to be kept."""


class Naming(msgspec.Struct, frozen=True):
    """An entry that names a blob."""

    source: NodeId
    """Whose outbox it stands in."""
    header: bytes


class MissingBlob(msgspec.Struct, frozen=True, order=True):
    """A blob that is named here and not here."""

    sha256: BlobId
    bytes: int
    """As its event says."""
    source: NodeId
    """Whose outbox names it: there it was first."""
    awaited: bool
    """A turn waits for it; else only a copy names it."""
