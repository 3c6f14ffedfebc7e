"""What one journal says, as plain records for the verdict. No disk: ``gateway.judging.evidence`` reads it."""

import msgspec

from outbox.chain import Entry, Head
from outbox.envelope import Ack, decode_event, decode_header, decode_payload
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, Incident, Received
from outbox.timestamps import parse_rfc3339


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an outbox."""

    seq: Seq
    digest: bytes
    """The chain's hash after it."""
    event_id: EventId
    kind: str
    attempt: int
    to: tuple[NodeId, ...]
    at_ms: int
    """``createdAt`` by the emitter's clock."""
    corr_id: EventId | None = None
    sender: AgentId | None = None
    recipient: AgentId | None = None
    status: AckStatus | None = None
    """Of an ACK; so are the two below."""
    outcome: Outcome | None = None
    deliveries: int = 0

    @property
    def accepts(self) -> bool:
        """Whether it says that an event is on its emitter's disk."""
        return self.status is AckStatus.ACCEPTED

    @property
    def ends(self) -> bool:
        """Whether it says how a turn ended; a refusal ends none."""
        return self.status is AckStatus.PROCESSED and self.outcome is not Outcome.REFUSED


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One journal at one moment."""

    node: NodeId
    outbox: tuple[Said, ...]
    """In order. What is in here was verified: chain and signatures."""
    broken: str = ""
    """Why the chain could not be verified to its end; empty when it could."""
    received: dict[EventId, Received]
    deliveries: dict[EventId, Delivery]
    cursors: dict[NodeId, Head]
    incidents: tuple[Incident, ...]
    quarantined: int = 0

    @property
    def seq(self) -> Seq:
        """How far its outbox goes."""
        return self.outbox[-1].seq if self.outbox else Seq(0)


def said(entry: Entry, digest: bytes) -> Said:
    """What an entry says. Raises InvalidEvent, TooLarge."""
    header, event = decode_header(entry.header), decode_event(entry.body)
    ack = decode_payload(event, Ack) if event.kind == Kind.ACK else None
    return Said(
        seq=entry.seq,
        digest=digest,
        event_id=event.event_id,
        kind=event.kind,
        attempt=event.trace.attempt,
        to=header.to if isinstance(header.to, tuple) else (),
        at_ms=parse_rfc3339(event.created_at),
        corr_id=event.corr_id,
        sender=event.source_agent_id,
        recipient=event.to_agent_id,
        status=ack.status if ack else None,
        outcome=ack.outcome if ack else None,
        deliveries=ack.deliveries if ack else 0,
    )
