"""Watches a world while it runs: what leaves a process must be on its disk, and what is promised is noted.

The witness looks at bytes on the wire, at turns in the hands of agents and at the stores; never at what the
code says of itself.
"""

import re
from collections.abc import Collection, Mapping

from gateway.door import PIPE_ROOM
from gateway.engine.effects import Handed, Sent, Told
from gateway.harness.sim.blobdisk import SimBlobs
from gateway.harness.sim.chronicle import Chronicle
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Finding, Promise
from gateway.harness.sim.labels import mislabelled
from gateway.harness.sim.memories import Memories
from gateway.harness.sim.notices import Notice
from gateway.harness.sim.standins import StandIns
from gateway.harness.sim.timeline import Timeline
from gateway.harness.sim.wire import WireEnd
from gateway.wire.codec import decode
from gateway.wire.frames import BlobPiece, Bye, Entries, Seen
from outbox.blobref import BlobId, named_blob
from outbox.chain import Entry, Head
from outbox.envelope import Ack, Event, Header, decode_event, decode_header, decode_payload
from outbox.ids import AgentId, Epoch, EventId, NodeId
from outbox.kinds import AckStatus, Kind
from outbox.readership import names, needs_body
from outbox.records import TurnState

_watched = re.compile(rb'"t":"(?:entries|seen|bye|blob)"').search
_NAMINGS_MAX = 10_000
TAG_WITHIN = 40
"""Bytes of a frame in which its type stands."""
_LEASE_SLACK_US = 1_000_000
"""Between the tick that counts a lease and the moment when the agent has the turn."""
FINDINGS_MAX = 20
"""Enough to understand a broken world."""


class Witness:
    """Notes promises and breaches of one world."""

    def __init__(self, memories: Memories, chronicle: Chronicle, liars: frozenset[str]) -> None:
        self.findings: list[Finding] = []
        self.told: dict[EventId, tuple[str, Sent]] = {}
        """Events whose sender was told that they are in the outbox of this node."""
        self.keys: dict[tuple[str, str], EventId] = {}
        """What each idempotency key of an agent stands for."""
        self.reported: dict[tuple[str, str], dict[bool, EventId]] = {}
        """By node and id the incidents that it told of, and that they are over: in which event."""
        self.handed_count = 0
        self.settled: set[tuple[str, str]] = set()
        """Turns whose end an agent was told, by node and event."""
        self.stand_ins: StandIns | None = None
        self.outcasts: Collection[NodeId] = ()
        """Honest nodes that were put out."""
        self._timeline: Timeline | None = None
        self._lease_us = 0
        self._leased_us: dict[tuple[str, str], int] = {}
        self._memories = memories
        self._chronicle = chronicle
        self._liars = liars
        self._copied: set[str] = set()
        self._handed: dict[tuple[str, str], int] = {}
        self._on_wire: dict[tuple[str, Epoch], int] = {}
        self._cursors: dict[tuple[str, str], Head] = {}
        self._blobs: Mapping[str, SimBlobs] = {}
        self._mirrors: Collection[NodeId] = ()
        self._named: list[BlobId] = []
        self.old_may_read_all = True
        """Who speaks version 1, in which all bodies travel, was admitted for that."""

    def watch_leases(self, timeline: Timeline, lease_ms: int) -> None:
        """Leases can be judged by the clock, since no process of this world ever stands still."""
        self._timeline, self._lease_us = timeline, lease_ms * 1000

    def watch_blobs(self, blobs: Mapping[str, SimBlobs], mirrors: Collection[NodeId]) -> None:
        """Where the bytes are, and which nodes may have those that are not for them."""
        self._blobs, self._mirrors = blobs, mirrors

    def blobs_named(self) -> list[BlobId]:
        """Blobs that events have named, the latest last."""
        return self._named

    def find(self, promise: Promise, what: str) -> None:
        """A promise is broken."""
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(promise, what))
        self._chronicle.note("world", "BROKEN", f"{promise} {what}")

    def went_back(self, node: str) -> None:
        """A node was put back to a backup: what it had promised since is forgotten with what it had done."""
        for whose, event in sorted(self.settled):
            owner, _, agent = whose.partition("/")
            if owner == node and self._memories.lapse(node, agent, event):
                self.settled.discard((whose, event))
        for counted in (self._handed, self._leased_us):
            for name in [name for name in counted if name[0].partition("/")[0] == node]:
                del counted[name]
        self._on_wire = {place: seq for place, seq in self._on_wire.items() if place[0] != node}
        self._cursors = {pair: head for pair, head in self._cursors.items() if pair[0] != node}

    def copied(self, node: str) -> None:
        """A home runs twice: what is shown in its name is not always its own."""
        self._copied.add(node)

    # --- what agents are told

    def sent(self, node: str, agent: str, key: str, answer: Sent) -> None:
        """An agent was told that its message is in the outbox."""
        self._chronicle.note(node, "sent", f"{agent} {answer.event_id} to {answer.agent}@{answer.node}")
        name = (f"{node}/{agent}", key)
        known = self.keys.setdefault(name, answer.event_id)
        disk = self._memories.disk(node)
        is_here = disk.first_position(known) is not None  # what is about it may be about a liar's of its id
        if known != answer.event_id and self._memories.forgot(node) and not is_here:
            self.keys[name] = answer.event_id  # the key was forgotten, with what it stood for
        elif known != answer.event_id:
            self.find(Promise.SENT_IS_KEPT, f"{agent} sent {key} once and got {known} and {answer.event_id}")
        self.told[answer.event_id] = (node, answer)
        entries = disk.events_about(answer.event_id)
        self._named += [blob for entry in entries if (blob := named_blob(entry.body)) is not None]
        if not entries:
            self.find(Promise.SENT_IS_KEPT, f"{node} said sent and {answer.event_id} is not in its outbox")

    def is_out(self, to: str) -> bool:
        """Whether one of these agents lives at a node that was put out."""
        return any(agent.partition("-")[0] in self.outcasts for agent in to.split(","))

    def reported_to(self, node: str, agent: str, notice: Notice, answer: Told) -> None:
        """An agent was told that the incident of a report is in the outbox."""
        what = "over" if notice.over else "open"
        self._chronicle.note(node, "reported", f"{agent} {answer.event_id} {notice.id} {what}")
        self.reported.setdefault((node, notice.id), {})[notice.over] = answer.event_id

    def handed(self, node: str, agent: str, turn: Handed) -> None:
        """An agent has a turn in its hands."""
        self.handed_count += 1
        again = " again" if turn.resumed else ""
        self._chronicle.note(node, "handed", f"{agent} {turn.event_id} #{turn.delivery_count}{again}")
        key = (f"{node}/{agent}", turn.event_id)
        event = decode_event(turn.body)
        source = event.source_node_id
        row = self._memories.disk(node).received(source, turn.event_id, AgentId(agent))
        before, self._handed[key] = self._handed.get(key, 0), turn.delivery_count
        if row is None or row.delivery_count < turn.delivery_count:
            self.find(Promise.ENGAGED_ONCE, f"{node} handed over {turn.event_id} before it was written")
        if key in self.settled:
            self.find(Promise.ENGAGED_ONCE, f"{node} handed over {turn.event_id} after its end was told")
        if wrong := self._memories.handed(node, source, agent, turn.event_id, resumed=turn.resumed):
            self.find(Promise.ENGAGED_ONCE, wrong)
        self._lease(key, turn)
        self._labels(node, event)
        blob = named_blob(turn.body)
        if blob is not None and not self._blobs[node].holds(blob):
            self.find(Promise.BLOBS_ARE_WHOLE, f"{node} handed over {turn.event_id} without its blob")
        if turn.delivery_count < before or (turn.delivery_count == before and not turn.resumed):
            count = turn.delivery_count
            self.find(Promise.ENGAGED_ONCE, f"{node} counts hand-over {count} of {turn.event_id} twice")

    def _labels(self, node: str, event: Event) -> None:
        """What arrives is labelled as it was sent; a reply as the question that this node has asked."""
        if event.source_node_id in self._liars:
            return
        asked = self._memories.disk(node).events_about(event.corr_id) if event.corr_id is not None else []
        questions = [decode_event(entry.body) for entry in asked]
        question = next((each for each in questions if each.event_id == event.corr_id), None)
        if wrong := mislabelled(event, question):
            self.find(Promise.SENT_IS_KEPT, wrong)

    def _lease(self, key: tuple[str, str], turn: Handed) -> None:
        """Only the end of a lease, or its return, begins the next delivery."""
        if self._timeline is None:
            return
        now_us = self._timeline.now_us
        since_us = self._leased_us.get(key)
        self._leased_us[key] = now_us
        if not turn.resumed and since_us is not None and now_us - since_us < self._lease_us - _LEASE_SLACK_US:
            self.find(Promise.ENGAGED_ONCE, f"{key[0]} dealt {turn.event_id} again while its lease was live")

    def returned(self, node: str, agent: str, event: str) -> None:
        """An agent gave its turn back."""
        self._leased_us.pop((f"{node}/{agent}", event), None)

    def ended(self, node: str, agent: str, event: str) -> None:
        """An agent was told that its turn has ended."""
        self._chronicle.note(node, "ended", f"{agent} {event}")
        self.settled.add((f"{node}/{agent}", event))
        self._memories.ended(node, agent, event)
        rows = self._memories.disk(node).ledger(EventId(event))
        if not any(row.to_agent == agent and row.state is TurnState.DONE for row in rows):
            self.find(Promise.ENGAGED_ONCE, f"{node} said {event} has ended and did not write it")

    # --- what leaves a process

    def tap(self, end: WireEnd, message: bytes) -> None:
        """A frame leaves: whatever it says must be on disk."""
        if end.wire.channel != PIPE_ROOM or _watched(message, 0, TAG_WITHIN) is None:
            return
        node, peer = end.owner.name, end.other.owner.name
        if node in self._liars:
            return
        frame = decode(message, end.wire.version)
        match frame:
            case Entries():
                self._bodies(node, NodeId(peer), frame, end.wire.version)
                self._entries(node, frame)
            case Seen():
                self._seen(node, frame)
            case Bye():
                self._bye(node, peer, frame)
            case BlobPiece():
                self._blob(node, NodeId(peer), frame)
            case _:
                pass

    def _entries(self, node: str, frame: Entries) -> None:
        if frame.node != node:
            self._carried(node, frame)
            return
        last, epoch = frame.page.checkpoint.seq, frame.page.epoch
        known = self._on_wire.get((node, epoch), 0)
        if last <= known:
            return
        self._on_wire[node, epoch] = last
        disk = self._memories.disk(node)
        if disk.last_of(epoch) < last:
            self.find(Promise.ACCEPTED_IS_DURABLE, f"{node} showed entry {last} before it was committed")
        for entry in frame.page.entries:
            if entry.seq > known and isinstance(entry, Entry):
                self._entry(node, disk, entry)

    def _bodies(self, node: str, peer: NodeId, frame: Entries, version: int) -> None:
        """A body goes to whom its header names, and to who may read all; version 1 has no choice."""
        if (version == 1 and self.old_may_read_all) or peer in self._mirrors or node in self._mirrors:
            return
        entries = (entry for entry in frame.page.entries if isinstance(entry, Entry))
        if any(not needs_body(entry.header, peer) for entry in entries):
            self.find(Promise.BLOBS_ARE_WHOLE, f"{node} gave {peer} a body that is not for it")

    def _carried(self, node: str, frame: Entries) -> None:
        """A copy of another outbox is shown: it must be on disk as well."""
        copy = self._memories.disk(node).copy(frame.node)
        if copy is None or (copy.epoch == frame.page.epoch and copy.last < frame.page.checkpoint.seq):
            what = f"{node} showed {frame.page.checkpoint.seq} of {frame.node} before it was committed"
            self.find(Promise.ACCEPTED_IS_DURABLE, what)

    def _entry(self, node: str, disk: Disk, entry: Entry) -> None:
        header, event = decode_header(entry.header), decode_event(entry.body)
        self._chronicle.note(node, "shows", f"{event.kind} {event.event_id} {event.corr_id or ''}")
        if event.trace.attempt > 1 and event.source_agent_id is not None:
            self._attempt(node, disk, event, header)
        if event.kind == Kind.REPLY and event.corr_id is not None:
            self._reply(node, disk, event, event.corr_id)
        if event.kind != Kind.ACK:
            return
        ack = decode_payload(event, Ack)
        forgotten = [row for row in disk.forgotten_turns.values() if row.event_id == ack.ref]
        rows = [*disk.ledger(ack.ref), *forgotten]
        if ack.status is AckStatus.ACCEPTED and not any(names(header, row.source) for row in rows):
            self.find(Promise.ACCEPTED_IS_DURABLE, f"{node} showed an ACK of {ack.ref} without its row")

    def _reply(self, node: str, disk: Disk, event: Event, question: EventId) -> None:
        """Circles of agents end because each answer counts one more than what it answers."""
        hops = {decode_event(row.body).trace.hops + 1 for row in disk.ledger(question)}
        if hops and event.trace.hops not in hops:
            self.find(Promise.EVERY_SEND_ENDS, f"{node} lost count of a circle: {event.event_id}")

    def _attempt(self, node: str, disk: Disk, event: Event, header: Header) -> None:
        """A new attempt needs proof that the one before was read: silence burns none."""
        for epoch, entry in disk.places_of(event.event_id):
            before = decode_header(entry.header)
            old = epoch != disk.identity().epoch  # a new epoch begins with what nobody had answered
            if old or before.event_id != event.event_id or before.attempt >= event.trace.attempt:
                continue
            for reader in set(before.to) - set(self.outcasts):  # nobody waits for what they have read
                sent_on = self.stand_ins is not None and event.to_agent_id in self.stand_ins.fallback
                again = names(header, NodeId(reader)) and before.attempt == event.trace.attempt - 1
                lost = again if sent_on else event.to_agent_id is not None or names(header, NodeId(reader))
                read = self._memories.ever_read(reader, NodeId(node))
                unread = lost and all(place < (epoch, entry.seq) for place in read)
                refused = self._memories.refused
                if unread and not refused(reader, NodeId(node), event.event_id, sent_on=sent_on):
                    burnt = f"{node} burnt attempt {before.attempt} of {event.event_id}"
                    self.find(Promise.EVERY_SEND_ENDS, f"{burnt}, which {reader} had not read")

    def _seen(self, node: str, frame: Seen) -> None:
        cursor = self._memories.disk(node).cursor(frame.node)
        if cursor is None or (cursor.epoch, cursor.seq) < (frame.epoch, frame.seq):
            self.find(Promise.CURSORS_ARE_HONEST, f"{node} says it has seen {frame.seq} of {frame.node}")

    def _blob(self, node: str, peer: NodeId, frame: BlobPiece) -> None:
        """Bytes go to whom an entry that names them is for, or to a mirror, and to nobody else."""
        namings = self._memories.disk(node).naming(frame.sha256, _NAMINGS_MAX)
        if peer not in self._mirrors and not any(names(decode_header(each.header), peer) for each in namings):
            self.find(Promise.BLOBS_ARE_WHOLE, f"{node} gave {peer} a blob that is not for it")

    def _bye(self, node: str, peer: str, frame: Bye) -> None:
        self._chronicle.note(node, "bye", f"{peer} {frame.code} {frame.hint}")
        framed = {"stream_refused", "bad_frame", "bad_checkpoint", "broken_chain"}
        if frame.code in framed and peer not in self._liars and not self._wrote_twice(node, peer):
            why = f"{frame.code} {frame.hint}"
            self.find(Promise.LIARS_ARE_REFUSED, f"{node} refuses the honest {peer}: {why}")

    def _wrote_twice(self, node: str, peer: str) -> bool:
        """Who was put back may write another history before somebody tells, and be refused for it."""
        return self._memories.forgot(peer) or bool({node, peer} & self._copied)

    # --- from time to time

    def look(self) -> None:
        """Cursors only go on."""
        for node, disk in self._memories.disks():
            for source, head in disk.cursors().items():
                before = self._cursors.get((node, source))
                if before is not None and (head.epoch, head.seq) < (before.epoch, before.seq):
                    self.find(Promise.CURSORS_ARE_HONEST, f"{node} went back in the outbox of {source}")
                self._cursors[node, source] = head
