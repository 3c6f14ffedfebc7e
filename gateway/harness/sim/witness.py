"""Watches a world while it runs: what leaves a process must be on its disk, and what is promised is noted.

The witness looks at bytes on the wire, at turns in the hands of agents and at the stores; never at what the
code says of itself.
"""

from collections.abc import Mapping

from gateway.door import PIPE_ROOM
from gateway.engine.effects import Handed, Sent
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.wire import WireEnd
from gateway.wire.codec import decode
from gateway.wire.frames import Bye, Entries, Seen
from outbox.chain import Head
from outbox.envelope import Ack, Event, decode_event, decode_payload
from outbox.ids import EventId
from outbox.kinds import AckStatus, Kind
from outbox.records import TurnState

_FRAMES_WATCHED = (b'"t":"entries"', b'"t":"seen"', b'"t":"bye"')
_TAG_WITHIN = 40
"""Bytes of a frame in which its type stands."""
FINDINGS_MAX = 20
"""Enough to understand a broken world."""


class Witness:
    """Notes promises and breaches of one world."""

    def __init__(self, disks: Mapping[str, Disk], chronicle: Chronicle, liars: frozenset[str]) -> None:
        self.findings: list[Finding] = []
        self.told: dict[EventId, tuple[str, Sent]] = {}
        """Events whose sender was told that they are in the outbox of this node."""
        self.keys: dict[tuple[str, str], EventId] = {}
        """What each idempotency key of an agent stands for."""
        self.handed_count = 0
        self.settled: set[tuple[str, str]] = set()
        """Turns whose end an agent was told, by node and event."""
        self._disks = disks
        self._chronicle = chronicle
        self._liars = liars
        self._handed: dict[tuple[str, str], int] = {}
        self._on_wire: dict[str, int] = {}
        self._cursors: dict[tuple[str, str], Head] = {}

    def find(self, promise: Promise, what: str) -> None:
        """A promise is broken."""
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(promise, what))
        self._chronicle.note("world", "BROKEN", f"{promise} {what}")

    # --- what agents are told

    def sent(self, node: str, agent: str, key: str, answer: Sent) -> None:
        """An agent was told that its message is in the outbox."""
        self._chronicle.note(node, "sent", f"{agent} {answer.event_id} to {answer.agent}@{answer.node}")
        known = self.keys.setdefault((agent, key), answer.event_id)
        if known != answer.event_id:
            self.find(Promise.SENT_IS_KEPT, f"{agent} sent {key} once and got {known} and {answer.event_id}")
        self.told[answer.event_id] = (node, answer)
        if not self._disks[node].events_about(answer.event_id):
            self.find(Promise.SENT_IS_KEPT, f"{node} said sent and {answer.event_id} is not in its outbox")

    def handed(self, node: str, agent: str, turn: Handed) -> None:
        """An agent has a turn in its hands."""
        self.handed_count += 1
        again = " again" if turn.resumed else ""
        self._chronicle.note(node, "handed", f"{agent} {turn.event_id} #{turn.delivery_count}{again}")
        key = (node, turn.event_id)
        row = self._disks[node].received(turn.event_id)
        before, self._handed[key] = self._handed.get(key, 0), turn.delivery_count
        if row is None or row.delivery_count < turn.delivery_count:
            self.find(Promise.ENGAGED_ONCE, f"{node} handed over {turn.event_id} before it was written")
        if key in self.settled:
            self.find(Promise.ENGAGED_ONCE, f"{node} handed over {turn.event_id} after its end was told")
        if turn.delivery_count < before or (turn.delivery_count == before and not turn.resumed):
            count = turn.delivery_count
            self.find(Promise.ENGAGED_ONCE, f"{node} counts hand-over {count} of {turn.event_id} twice")

    def ended(self, node: str, agent: str, event: str) -> None:
        """An agent was told that its turn has ended."""
        self._chronicle.note(node, "ended", f"{agent} {event}")
        self.settled.add((node, event))
        row = self._disks[node].received(EventId(event))
        if row is None or row.state is not TurnState.DONE:
            self.find(Promise.ENGAGED_ONCE, f"{node} said {event} has ended and did not write it")

    # --- what leaves a process

    def tap(self, end: WireEnd, message: bytes) -> None:
        """A frame leaves: whatever it says must be on disk."""
        start = message[:_TAG_WITHIN]
        node, peer = end.owner.name, end.other.owner.name
        if end.wire.channel != PIPE_ROOM or node in self._liars:
            return
        if not any(tag in start for tag in _FRAMES_WATCHED):
            return
        frame = decode(message)
        match frame:
            case Entries():
                self._entries(node, frame)
            case Seen():
                self._seen(node, frame)
            case Bye():
                self._bye(node, peer, frame)
            case _:
                pass

    def _entries(self, node: str, frame: Entries) -> None:
        last = frame.page.checkpoint.seq
        known = self._on_wire.get(node, 0)
        if last <= known:
            return
        self._on_wire[node] = last
        disk = self._disks[node]
        if disk.head().seq < last:
            self.find(Promise.ACCEPTED_IS_DURABLE, f"{node} showed entry {last} before it was committed")
        for entry in frame.page.entries:
            if entry.seq > known:
                self._entry(node, disk, decode_event(entry.body))

    def _entry(self, node: str, disk: Disk, event: Event) -> None:
        self._chronicle.note(node, "shows", f"{event.kind} {event.event_id} {event.corr_id or ''}")
        if event.kind != Kind.ACK:
            return
        ack = decode_payload(event, Ack)
        row = disk.received(ack.ref)
        if ack.status is AckStatus.ACCEPTED and row is None:
            self.find(Promise.ACCEPTED_IS_DURABLE, f"{node} showed an ACK of {ack.ref} without its row")

    def _seen(self, node: str, frame: Seen) -> None:
        cursor = self._disks[node].cursor(frame.node)
        if cursor is None or cursor.seq < frame.seq:
            self.find(Promise.CURSORS_ARE_HONEST, f"{node} says it has seen {frame.seq} of {frame.node}")

    def _bye(self, node: str, peer: str, frame: Bye) -> None:
        self._chronicle.note(node, "bye", f"{peer} {frame.code}")
        framed = {"stream_refused", "bad_frame", "bad_checkpoint", "broken_chain"}
        if frame.code in framed and peer not in self._liars:
            why = f"{frame.code} {frame.hint}"
            self.find(Promise.LIARS_ARE_REFUSED, f"{node} refuses the honest {peer}: {why}")

    # --- from time to time

    def look(self) -> None:
        """Cursors only go on."""
        for node, disk in self._disks.items():
            for source, head in disk.cursors().items():
                before = self._cursors.get((node, source))
                if before is not None and head.seq < before.seq:
                    self.find(Promise.CURSORS_ARE_HONEST, f"{node} went back in the outbox of {source}")
                self._cursors[node, source] = head
