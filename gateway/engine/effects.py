"""What an engine wants done after its transaction is on disk: a tagged union, in the order of the list."""

import msgspec

from auth.invites import InviteStatus
from gateway.engine.bloblife import BlobDropped, BlobKept, BlobsMissing
from gateway.engine.doubts import DoubtsEnded
from outbox.chain import Head, Page
from outbox.forks import ForkProof
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import Copy, Identity, LocalAgent


class Sent(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """The event is in the own outbox."""

    req: int
    event_id: EventId
    thread_id: str
    agent: AgentId
    """To whom."""
    node: NodeId | None
    """Where it was routed; None when the agent has no owner (it is a dead letter already)."""
    duplicate: bool
    """The idempotency key had been used for the same request: nothing was appended."""
    nodes: tuple[NodeId, ...] = ()
    """All of them, of an event that goes to several."""


class Told(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The signal is in the own outbox, for every node to read."""

    req: int
    event_id: EventId
    duplicate: bool
    """It had been told before: nothing was appended."""


class Settled(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """The turn's end (or return) is on disk."""

    req: int
    event_id: EventId
    duplicate: bool
    """It had ended the same way before."""


class Dismissed(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """So many dead letters are not listed any more."""

    req: int
    count: int


class IncidentsClosed(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """So many incidents are closed."""

    req: int
    count: int


class Extended(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The lease now lasts this much longer."""

    req: int
    event_id: EventId
    lease_ms: int


class Subscribed(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The subscription stands; resumed turns follow."""

    req: int
    subscriber: str


class AgentChanged(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The list of local agents changed, or what one's record says: tell the state room."""

    req: int
    name: AgentId
    owner_epoch: int
    active: bool
    fallback: tuple[NodeId, ...] = ()
    grace_ms: int = 0
    groups: tuple[str, ...] = ()
    stands_in: bool = False
    """This node only answers for it: its owner speaks in the room."""


def agent_changed(req: int, row: LocalAgent, *, active: bool) -> AgentChanged:
    """What there is to tell of a local agent."""
    return AgentChanged(
        req,
        row.name,
        row.owner_epoch,
        active=active,
        fallback=row.fallbacks,
        grace_ms=row.grace_ms,
        groups=row.member_of,
        stands_in=bool(row.stands_in_for),
    )


class Ticketed(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A ticket was minted; the answer's JSON as it goes over the wire."""

    req: int
    body: bytes


class Admitted(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The socket may open."""

    req: int
    node: NodeId
    room: str
    public_key: bytes
    session_id: str
    new_member: bool
    """This upgrade spent an invite: the node's admission is to be published before the socket opens."""


class Invited(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The invite is on disk. The token is in no other place than this answer."""

    req: int
    invite_id: str
    status: InviteStatus
    expires_at_ms: int
    token: str


class Pruned(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The outbox begins above its floor now."""

    req: int
    floor: Seq
    """Up to where the outbox is forgotten, in the epoch of its floor; 0: nothing is."""
    entries: int
    bytes: int
    """What is left."""
    more: bool
    """More may go than one tick can forget: ask again."""


class RevocationKept(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A revocation is on disk."""

    req: int


class Refused(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A request was not done."""

    req: int
    code: str
    what: str
    hint: str
    retryable: bool


class Handed(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """Give this turn to a subscriber."""

    subscriber: str
    event_id: EventId
    lease_id: str
    lease_ms: int
    delivery_count: int
    resumed: bool
    body: bytes


class Appended(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """The own outbox grew: push it to the links."""

    page: Page
    shown: bool = True
    """False while nobody may see it yet."""


class CopyChanged(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A verified copy of another outbox grew or was trimmed: links serve it on."""

    node: NodeId
    copy: Copy | None
    """The one of the latest epoch, as it is now; None when nothing is left."""
    page: Page | None
    """What was added."""


class CursorMoved(msgspec.Struct, frozen=True, gc=False, tag=True, tag_field="t"):
    """Another node's outbox was handled up to here: say so on its link and in the room."""

    node: NodeId
    head: Head


class CaughtUp(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Another node's outbox was read to the last head that any link had advertised."""

    node: NodeId


class StreamBroken(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A page was not taken: its link brings no more of this stream, and ends if it is the writer's own."""

    node: NodeId
    code: str
    what: str
    relay: NodeId | None = None
    """Who brought it, when that was not its writer."""
    link: int = 0


class EpochBegan(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The own outbox has a new epoch: links begin anew, records are signed for it."""

    identity: Identity


class StreamShown(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The own outbox may be shown up to here: whatever was appended may."""

    node: NodeId
    head: Head


class ForkFound(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A node has signed two histories: tell the state room."""

    proof: ForkProof


class CopyRuns(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Another process writes with this node's key: this one ends."""

    what: str


class IncidentChanged(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An incident was opened or closed: log it."""

    kind: str
    subject: str
    open: bool
    detail: str


Answer = (
    Sent
    | Told
    | Settled
    | Dismissed
    | IncidentsClosed
    | Extended
    | Subscribed
    | AgentChanged
    | Pruned
    | DoubtsEnded
    | BlobKept
    | Ticketed
    | Admitted
    | Invited
    | RevocationKept
    | Refused
)
Effect = (
    Answer
    | Handed
    | Appended
    | CopyChanged
    | BlobsMissing
    | BlobDropped
    | CursorMoved
    | CaughtUp
    | StreamBroken
    | EpochBegan
    | StreamShown
    | ForkFound
    | CopyRuns
    | IncidentChanged
)
