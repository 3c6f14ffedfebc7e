"""What one journal says, as plain records for the verdict. No disk: ``gateway.judging.evidence`` reads it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from outbox.chain import Entry, Head
from outbox.envelope import Ack, decode_event, decode_header, decode_payload
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq, epoch_ordinal
from outbox.kinds import AckStatus, Kind, Outcome
from outbox.records import Delivery, Incident, Received
from outbox.timestamps import parse_rfc3339


class Turn(NamedTuple):
    """Of whom a ledger row speaks: what one agent did about one event of one node."""

    source: NodeId
    event: EventId
    agent: AgentId


class Debt(NamedTuple):
    """Of what a delivery row speaks: one event that was routed to one node; None is nowhere yet."""

    event: EventId
    node: NodeId | None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an outbox."""

    epoch: Epoch
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
    promises: bool = False
    """An agent says by it when it expects to be done, or with what."""

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
    start: Head
    """The place before the first entry that is left: the genesis, or the floor of what was forgotten."""
    outbox: tuple[Said, ...]
    """In order, over all epochs. What is in here was verified: chain and signatures."""
    broken: str = ""
    """Why the chain could not be verified to its end; empty when it could."""
    received: dict[Turn, Received]
    deliveries: dict[Debt, Delivery]
    cursors: dict[NodeId, Head]
    incidents: tuple[Incident, ...]
    quarantined: int = 0
    doubted: tuple[NodeId, ...] = ()
    """Nodes that still have to say what was dealt with here before it was forgotten."""
    unshown: Mapping[Epoch, Seq] = {}
    """How far an epoch may have been shown, for those of which not all was."""
    hidden: frozenset[Head] = frozenset()
    """Places of ended epochs behind what was shown of them: they are there, and in nobody's history."""

    @property
    def seq(self) -> Seq:
        """How far its outbox goes."""
        return self.outbox[-1].seq if self.outbox else self.start.seq

    @property
    def entries(self) -> int:
        """How many entries it has had that others can read, over all epochs; those that are gone included."""
        return self.start.seq + len(self.outbox)

    @property
    def head(self) -> Head:
        """Where its outbox ends."""
        last = self.outbox[-1] if self.outbox else None
        return self.start if last is None else Head(last.epoch, last.seq, last.digest)

    def last_of(self, epoch: Epoch) -> Seq:
        """The last entry of an epoch, shown or not; 0 for one that is not in this outbox."""
        hidden = (head.seq for head in self.hidden if head.epoch == epoch)
        shown = next((entry.seq for entry in reversed(self.outbox) if entry.epoch == epoch), Seq(0))
        return max((shown, *hidden))

    def shown_of(self, epoch: Epoch) -> Seq:
        """How far others may have seen an epoch."""
        return self.unshown.get(epoch, self.last_of(epoch))

    @property
    def has_forgotten(self) -> bool:
        """Whether entries have gone, and with them rows: what is missing may have been there."""
        return self.start.seq > 0

    def upto(self, head: Head) -> tuple[Said, ...] | None:
        """What is left of its outbox up to a head; None when that is no place in its history."""
        if not head.seq or _is_before(head, self.start):
            return ()
        if (head.epoch, head.seq, head.hash) == (self.start.epoch, self.start.seq, self.start.hash):
            return ()
        for count, entry in enumerate(self.outbox, 1):
            if (entry.epoch, entry.seq, entry.digest) == (head.epoch, head.seq, head.hash):
                return self.outbox[:count]
        return None


Mesh = Mapping[NodeId, NodeFacts]
"""The journals of a run."""


def _is_before(head: Head, start: Head) -> bool:
    return (epoch_ordinal(head.epoch), head.seq) < (epoch_ordinal(start.epoch), start.seq)


def ledger(rows: Iterable[Received]) -> dict[Turn, Received]:
    """Ledger rows by what they speak of."""
    return {Turn(row.source, row.event_id, row.to_agent): row for row in rows}


def debts(rows: Iterable[Delivery]) -> dict[Debt, Delivery]:
    """Delivery rows by what they speak of."""
    return {Debt(row.event_id, row.node): row for row in rows}


def said(entry: Entry, at: Head) -> Said:
    """What an entry says; ``at`` is the chain after it. Raises InvalidEvent, TooLarge."""
    header, event = decode_header(entry.header), decode_event(entry.body)
    ack = decode_payload(event, Ack) if event.kind == Kind.ACK else None
    return Said(
        epoch=at.epoch,
        seq=entry.seq,
        digest=at.hash,
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
        promises=ack.promises if ack else False,
    )
