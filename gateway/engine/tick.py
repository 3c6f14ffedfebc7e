"""The open work of one tick: what was decided so far and not committed yet."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from gateway.engine.absences import Absences
from gateway.engine.circles import UNSAID, Circles
from gateway.engine.effects import Appended, Effect, IncidentChanged
from gateway.engine.errands import Errands
from gateway.engine.inputs import Now
from gateway.engine.limits import NEAR_TOLD_MAX
from gateway.engine.pace import Pace, PaceLimits
from gateway.engine.peers import Peers
from gateway.engine.policy import Policy
from gateway.engine.questions import Questions
from gateway.routing import Route, choose, near
from outbox.batch import Draft, seal
from outbox.chain import Entry, Head, Page, Sign
from outbox.envelope import Event, encode_event, encode_header, header_of
from outbox.ids import AgentId, Epoch, EventId, NodeId, Seq
from outbox.limits import BATCH_BYTES_MAX, BATCH_ENTRIES
from outbox.readership import names
from outbox.records import Identity, Incident
from outbox.store import Store
from outbox.timestamps import rfc3339
from stateroom.view import View


class Entropy(Protocol):
    """New ids and chance, from outside the core."""

    def event_id(self, wall_ms: int) -> EventId:
        """A new event id."""
        ...

    def lease_id(self) -> str:
        """A new lease id."""
        ...

    def fraction(self) -> float:
        """A number in [0, 1)."""
        ...

    def entropy(self, size: int) -> bytes:
        """So many random bytes."""
        ...


class Stream(msgspec.Struct, frozen=True, gc=False):
    """One epoch of a node's outbox."""

    source: NodeId
    epoch: Epoch


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """An event that stands in an outbox, on its way to whoever must act on it here."""

    source: NodeId
    epoch: Epoch
    entry: Entry
    event: Event


@dataclass(slots=True)
class Tick:
    """One transaction in the making."""

    now: Now
    store: Store
    view: View
    identity: Identity
    policy: Policy
    entropy: Entropy
    peers: Peers = field(default_factory=Peers)
    machine_ms: int | None = None
    """The wall clock of the machine, where the engine goes by a slower one."""
    pace: Pace = field(default_factory=lambda: Pace(PaceLimits()))
    circles: Circles = field(default_factory=lambda: Circles(UNSAID))
    absences: Absences = field(default_factory=lambda: Absences(NodeId("")))
    questions: Questions = field(default_factory=Questions)
    errands: "Errands[Tick]" = field(default_factory=Errands)
    rows_left: int = field(init=False)
    """Rows that errands may still look at in this tick."""
    near_left: int = NEAR_TOLD_MAX
    """How often this tick may still look for names that look like another."""
    via: NodeId | None = None
    """Who brought the page that is being handled, when that is not its writer."""
    effects: list[Effect] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    loopback: deque[Arrived] = field(default_factory=deque)
    said: set[tuple[NodeId, EventId]] = field(default_factory=set)
    """Events, by their source, of which this tick has said something for the first time."""
    repeated: set[tuple[NodeId, EventId]] = field(default_factory=set)
    """Events, by their source, whose ACKs this tick has said again."""
    head: Head = field(init=False)
    stamp: str = field(init=False)
    """The wall clock as the envelope writes it."""

    def __post_init__(self) -> None:
        self.head = self.store.head()
        self.stamp = rfc3339(self.now.wall_ms)
        self.rows_left = self.policy.errand_rows

    def route(
        self, agent: AgentId, *, prefer: NodeId | None = None, avoid: frozenset[NodeId] = frozenset()
    ) -> Route | None:
        """Where an event to an agent goes now; None while nobody owns it."""
        away = self.absences.away(self.now.mono_ms)
        return choose(self.view, agent, away, prefer=prefer, avoid=avoid)

    def near(self, agent: AgentId) -> tuple[str, ...]:
        """Agents whose names look like one that nobody knows; none once this tick has looked often enough."""
        if self.near_left == 0:
            return ()
        self.near_left -= 1
        return near(self.view, agent)

    def there_ms(self, node: NodeId) -> int:
        """What another node's wall clock shows now, as well as it was measured over a link."""
        if node == self.identity.node or self.machine_ms is None:
            return self.now.wall_ms
        return self.machine_ms + self.peers.clock_offset_ms(node)

    def next_seq(self) -> Seq:
        """Where the next emitted event will stand."""
        return Seq(self.head.seq + len(self.drafts) + 1)

    def emit(self, event: Event, to: tuple[NodeId, ...] | str) -> Seq:
        """Put an event into the batch; if this node is among its readers it also arrives here.

        Raises TooLarge before anything changed.
        """
        body = encode_event(event)
        header = header_of(event, to, len(body))
        seq = self.next_seq()
        entry = Entry(seq, encode_header(header), body)
        self.drafts.append(Draft(entry, header))
        if names(header, self.identity.node):
            self.loopback.append(Arrived(self.identity.node, self.head.epoch, entry, event))
        return seq

    def seal(self, sign: Sign, *, shown: bool = True) -> None:
        """Write the batch to the store, each piece of it under a signed checkpoint."""
        for drafts in _pieces(self.drafts):
            batch = seal(self.identity, self.head, drafts, sign)
            self.store.append(batch)
            page = Page(self.head.epoch, batch.entries, batch.checkpoint, self.head.hash)
            self.effects.append(Appended(page, shown))
            self.head = batch.checkpoint.head

    def open_incident(self, kind: str, subject: str, detail: str) -> None:
        """Raise an incident, once."""
        known = self.store.incident(kind, subject)
        if known is None or known.closed_at_ms is not None:
            row = Incident(kind=kind, subject=subject, opened_at_ms=self.now.wall_ms, detail=detail)
            self.store.put_incident(row)
            self.effects.append(IncidentChanged(kind, subject, open=True, detail=detail))

    def note_incident(self, kind: str, subject: str, detail: str) -> None:
        """Record what is over already, once."""
        if self.store.incident(kind, subject) is None:
            self.open_incident(kind, subject, detail)
            self.close_incident(kind, subject)

    def close_incident(self, kind: str, subject: str) -> None:
        """Close it if it is open."""
        if kind not in self.store.open_kinds:
            return
        known = self.store.incident(kind, subject)
        if known is not None and known.closed_at_ms is None:
            closed = Incident(
                kind=kind,
                subject=subject,
                opened_at_ms=known.opened_at_ms,
                closed_at_ms=self.now.wall_ms,
                detail=known.detail,
            )
            self.store.put_incident(closed)
            self.effects.append(IncidentChanged(kind, subject, open=False, detail=known.detail))


def _pieces(drafts: list[Draft]) -> Iterator[list[Draft]]:
    """Cut a batch so that each piece can travel in one frame."""
    start = piece_bytes = 0
    for at, draft in enumerate(drafts):
        entry_bytes = len(draft.entry.header) + draft.header.size
        piece_bytes += entry_bytes
        if at > start and (at - start == BATCH_ENTRIES or piece_bytes > BATCH_BYTES_MAX):
            yield drafts[start:at]
            start, piece_bytes = at, entry_bytes
    if drafts:
        yield drafts[start:]
