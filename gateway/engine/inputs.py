"""What can happen to an engine: a tagged union, so that a tick can run in another process without a change.

``req`` numbers a request of this process; its answer is the effect with the same number.
"""

import msgspec

from gateway.engine.bloblife import BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import EndDoubts
from gateway.engine.knocks import Exchange, Invite, KeepRevocation, Renew, RevokeInvite, Upgrade
from gateway.engine.stalls import StreamFlows, StreamStalled
from outbox.blobref import BlobRef
from outbox.chain import Checkpoint, Excerpt
from outbox.envelope import IncidentNotice, MaintenanceNotice
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.kinds import Outcome
from stateroom.view import View


class Send(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t", kw_only=True):
    """An agent sends a message to another agent of the mesh. Answer: Sent."""

    req: int
    agent: AgentId
    to: str
    """``name``, ``name@node`` or ``agents/<name>/inbox``; ``*``, ``group:name`` or a list with commas."""
    payload: msgspec.Raw
    type: str | None = None
    schema: str | None = None
    thread_id: str | None = None
    idempotency_key: str | None = None
    expires_in_ms: int | None = None
    priority: int = 2
    cause: EventId | None = None
    """The event of its inbox that made the agent send this: chains of causes end like chains of replies."""
    wait: bool = False
    """A known agent without an owner: wait until it has one, instead of giving up at once."""
    payload_ref: BlobRef | None = None
    """Instead of a payload (``null``): a blob that is here."""
    traceparent: str | None = None
    """Of its author's trace; without one it belongs to the trace of its cause."""


class Reply(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t", kw_only=True):
    """An agent answers an event of its inbox; a turn that it holds is processed with it. Answer: Sent."""

    req: int
    agent: AgentId
    event_id: EventId
    payload: msgspec.Raw
    lease_id: str | None = None
    """The lease of the turn; may be left out when nobody else holds it."""
    type: str | None = None
    schema: str | None = None
    idempotency_key: str | None = None
    payload_ref: BlobRef | None = None
    """Instead of a payload (``null``): a blob that is here."""
    traceparent: str | None = None
    """Of its author's trace; without one it belongs to the trace of the question."""


class TellIncident(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An agent tells every node of an incident, or of its end; once, however often it asks. Answer: Told."""

    req: int
    agent: AgentId
    notice: IncidentNotice
    ref: EventId | None = None
    """The message that it is about."""
    detail: str = ""


class Settle(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t", kw_only=True):
    """An agent's turn is done, well or badly. Answer: Settled."""

    req: int
    agent: AgentId
    event_id: EventId
    lease_id: str | None = None
    outcome: Outcome = Outcome.OK
    error: str | None = None


class Nack(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An agent gives a turn back; it is handed over again after ``delay_ms``. Answer: Settled."""

    req: int
    agent: AgentId
    event_id: EventId
    lease_id: str
    delay_ms: int = 0


class Extend(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """An agent needs more time for a turn. Answer: Extended."""

    req: int
    agent: AgentId
    event_id: EventId
    lease_id: str
    lease_ms: int
    eta_at: str | None = None
    """When it expects to be done: RFC 3339. With ``plan_summary`` it goes to the sender."""
    plan_summary: str | None = None


class Subscribe(msgspec.Struct, frozen=True, tag=True, tag_field="t", kw_only=True):
    """A socket of an agent wants its inbox; it starts with credit 0. Answer: Subscribed."""

    req: int
    subscriber: str
    agent: AgentId
    session: str
    """The agent's own name for this run of it: leases belong to it, over disconnect and restart."""


class Grant(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A subscriber can take this many more turns. No answer unless it is refused."""

    req: int
    subscriber: str
    credit: int


class Unsubscribe(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A socket is gone. No answer."""

    subscriber: str


class AddAgent(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An operator names an agent that lives here, or is answered for here. Answer: AgentChanged."""

    req: int
    name: AgentId
    token_hash: bytes
    fallback: tuple[NodeId, ...] = ()
    """Nodes that may answer for it, in order, when this one is away for longer than the grace."""
    grace_ms: int = 0
    groups: tuple[str, ...] = ()
    stands_in_for: NodeId | None = None
    """The node that owns it: then this one is only its fallback."""


class SetAgent(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An operator changes what an agent's record says; None leaves it as it is. Answer: AgentChanged."""

    req: int
    name: AgentId
    fallback: tuple[NodeId, ...] | None = None
    grace_ms: int | None = None
    groups: tuple[str, ...] | None = None


class RemoveAgent(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An operator takes an agent away; its unfinished turns fail. Answer: AgentChanged."""

    req: int
    name: AgentId


class Prune(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Forget what may go: asked from time to time, or by an operator. Answer: Pruned."""

    req: int
    force: bool
    """Also what readers have not read."""


class Maintain(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An operator announces that this node goes away for a while, or that it is back. Answer: Told."""

    req: int
    notice: MaintenanceNotice


class FloorRead(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A node has forgotten its outbox up to a checkpoint; the signature was verified."""

    node: NodeId
    floor: Checkpoint
    link: int = 0
    """The link whose pages follow on from it; 0 when no link waits for it."""


class PageRead(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """A page of another node's outbox came over a link; its checkpoint's signature was verified."""

    node: NodeId
    page: Excerpt
    relay: NodeId | None = None
    """Who brought it, when that was not its writer."""
    link: int = 0
    """The link that it came over, by its number in this process."""
    size: int = 0
    """Bytes of that link's credit."""


class RelayCaught(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A link found that its peer does not pass on what another node wrote."""

    relay: NodeId
    node: NodeId
    """Whose outbox it was about."""
    code: str
    what: str


class StreamHead(msgspec.Struct, frozen=True):
    """How far a stream goes, as a link advertises it."""

    node: NodeId
    epoch: Epoch
    seq: Seq


class StreamKnown(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A peer has said, over a new link, how far it knows this node's outbox."""

    peer: NodeId
    checkpoint: Checkpoint | None
    """What it showed, its signature verified; None when it knows nothing of it."""


class LinkUp(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A link with a peer is up, or says anew what it has: the head of each stream that it can bring."""

    peer: NodeId
    heads: tuple[StreamHead, ...]


class LinkDown(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The last link with a peer is gone, and with it whatever it had advertised."""

    peer: NodeId


class ClockMeasured(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A peer's wall clock was compared with ours over a link."""

    node: NodeId
    offset_ms: int
    """How far it is ahead of ours."""
    within_ms: int
    """Half of the round trip: the measurement may be wrong by so much."""


class ViewChanged(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The state room says something new."""

    view: View


Input = (
    Send
    | TellIncident
    | Reply
    | Settle
    | Redrive
    | Dismiss
    | CloseIncidents
    | Nack
    | Extend
    | Subscribe
    | Grant
    | Unsubscribe
    | AddAgent
    | SetAgent
    | RemoveAgent
    | Prune
    | Maintain
    | KeepBlob
    | BlobLost
    | BlobsFull
    | BlobsFit
    | PageRead
    | FloorRead
    | RelayCaught
    | StreamStalled
    | StreamFlows
    | StreamKnown
    | LinkUp
    | LinkDown
    | ClockMeasured
    | ViewChanged
    | EndDoubts
    | Exchange
    | Renew
    | Upgrade
    | Invite
    | RevokeInvite
    | KeepRevocation
)

Request = (
    Send
    | TellIncident
    | Reply
    | Settle
    | Redrive
    | Dismiss
    | CloseIncidents
    | Nack
    | Extend
    | Subscribe
    | Grant
    | AddAgent
    | SetAgent
    | RemoveAgent
    | Prune
    | Maintain
    | EndDoubts
    | KeepBlob
    | Exchange
    | Renew
    | Upgrade
    | Invite
    | RevokeInvite
    | KeepRevocation
)
"""Inputs that somebody waits for."""


class Now(msgspec.Struct, frozen=True):
    """The two clocks of a tick: the wall's for what is written, the monotonic one for leases."""

    wall_ms: int
    mono_ms: int
