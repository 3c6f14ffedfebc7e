"""What a tick does on a disk that is really full: whatever needs no room, and no more."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from gateway.engine.bloblife import BlobLost, BlobsFit, BlobsFull, KeepBlob
from gateway.engine.closing import CloseIncidents
from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.doubts import DoubtsEnded, EndDoubts
from gateway.engine.effects import (
    Dismissed,
    Effect,
    Extended,
    Handed,
    IncidentsClosed,
    Pruned,
    Refused,
    Sent,
    Settled,
    Subscribed,
    Ticketed,
    Told,
)
from gateway.engine.inputs import (
    AddAgent,
    ClockMeasured,
    Extend,
    FloorRead,
    Grant,
    Input,
    LinkDown,
    LinkUp,
    Maintain,
    Nack,
    PageRead,
    Prune,
    RelayCaught,
    RemoveAgent,
    Reply,
    Send,
    SetAgent,
    Settle,
    StreamHead,
    StreamKnown,
    Subscribe,
    TellIncident,
    Unsubscribe,
    ViewChanged,
)
from gateway.engine.knocks import Exchange, Invite, KeepRevocation, Renew, RevokeInvite, Upgrade
from gateway.engine.limits import ROOM_AGAIN_MS
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.harness.real.disk import SmallDisk
from gateway.hosting.ticking import Ticking
from outbox.envelope import IncidentNotice
from outbox.errors import StorageFull
from outbox.ids import AgentId, EventId, NodeId
from outbox.journal import Journal
from outbox.kinds import Outcome
from outbox.reader import JournalReader
from outbox.records import Identity
from tests.gateway.engine.conftest import EPOCH, MESH, World

A, B, ANN, BOB = NodeId("a"), NodeId("b"), AgentId("ann"), AgentId("bob")
NOTICE = IncidentNotice(id="i1", name="stalled", severity="high", opened_at="2026-11-27T12:00:00.000Z")
TEXT = msgspec.Raw(b'{"n":1}')

NEED_ROOM = {AddAgent, SetAgent, RemoveAgent, Nack, Maintain, KeepBlob, Invite, KeepRevocation}
"""They change something whenever they are not refused."""
NOTED = {RelayCaught, StreamStalled, StreamFlows, BlobLost, BlobsFull, BlobsFit}
"""The runtime keeps them until there is room."""
KNOCKS = {Exchange, Upgrade, RevokeInvite}
"""What the door answers: a ticket that was used, and a refusal, have to be kept."""


class Full:
    """Node ``a``: its agents have turns in every state, time has made things due, and its disk is full."""

    def __init__(self, place: Path) -> None:
        self.disk = SmallDisk(place)
        self.path = place / "journal.db"
        self.world = world = World("b")
        self.journal = Journal.create(self.path, Identity(MESH, A, EPOCH), wal_bytes=0)
        self.node = world.join("a", self.journal)
        world.live("a", ANN, BOB)
        world.live("b", "far")
        world.tick("a", Prune(1, force=False))
        self.done = world.sent("a", ANN, BOB, idempotency_key="once")
        self.replied, self.in_hand = world.sent("a", ANN, BOB), world.sent("a", ANN, BOB)
        leases = {turn.event_id: turn.lease_id for turn in world.listen("a", BOB, credit=3)}
        self.lease = leases[self.in_hand]
        world.settle("a", BOB, self.done, lease_id=leases[self.done])
        world.reply("a", BOB, self.replied, lease_id=leases[self.replied], idempotency_key="answer")
        self.waiting = world.sent("a", ANN, BOB)
        self.far = world.sent("a", ANN, "far")
        world.tick("a", TellIncident(req=1, agent=ANN, notice=NOTICE))
        world.sent("b", "far", ANN)
        world.pull("a", "b")
        self.read = PageRead(B, world.pages_of("b")[0])
        world.advance(world.policy.sla_accept_ms + 1)
        assert self.journal._rows._bytes, "rows are behind"
        self.start(self.journal)
        self.reader = JournalReader.open(self.path)

    def start(self, journal: Journal | None = None) -> None:
        """A process opens the journal."""
        self.journal = self.node.store = journal or Journal.open(self.path, wal_bytes=0)
        world, node = self.world, self.node
        self.ticking = Ticking(
            self.journal, lambda _view, _now: world._start(node), world.view(), world.now()
        )

    def fill(self) -> None:
        self.disk.fill()
        with pytest.raises(StorageFull):
            self.apply(self.send())

    def apply(self, *inputs: Input) -> list[Effect]:
        return self.ticking.apply(inputs, self.world.now())

    def send(self, **rest: Any) -> Send:
        return Send(req=9, agent=ANN, to="bob", payload=TEXT, **rest)

    def asked(self) -> dict[type, tuple[Input, type | None]]:
        """An input of each kind that needs no room, and its answer; None for one without."""
        event = EventId(f"evt_{'0' * 32}")
        return {
            Send: (self.send(idempotency_key="once"), Sent),
            Reply: (
                Reply(
                    req=9,
                    agent=BOB,
                    event_id=self.replied,
                    payload=msgspec.Raw(b'"yes"'),
                    idempotency_key="answer",
                ),
                Sent,
            ),
            Settle: (Settle(req=9, agent=BOB, event_id=self.done, outcome=Outcome.OK), Settled),
            TellIncident: (TellIncident(req=9, agent=ANN, notice=NOTICE), Told),
            Extend: (
                Extend(req=9, agent=BOB, event_id=self.in_hand, lease_id=self.lease, lease_ms=1_000),
                Extended,
            ),
            Subscribe: (Subscribe(req=9, subscriber="new", agent=BOB, session="run-2"), Subscribed),
            Grant: (Grant(9, "new", 1), None),
            Unsubscribe: (Unsubscribe("new"), None),
            Prune: (Prune(9, force=False), Pruned),
            Redrive: (Redrive(req=9, event_id=event), Refused),
            Dismiss: (Dismiss(req=9, before_ms=0), Dismissed),
            CloseIncidents: (CloseIncidents(req=9, before_ms=1), IncidentsClosed),
            EndDoubts: (EndDoubts(9), DoubtsEnded),
            Renew: (Renew(9, b"{}", "here"), Ticketed),
            PageRead: (self.read, None),
            FloorRead: (FloorRead(B, self.read.page.checkpoint), None),
            StreamKnown: (StreamKnown(B, None), None),
            LinkUp: (LinkUp(B, (StreamHead(B, EPOCH, self.read.page.checkpoint.seq),)), None),
            LinkDown: (LinkDown(B), None),
            ClockMeasured: (ClockMeasured(B, 5, 5), None),
            ViewChanged: (ViewChanged(self.world.view()), None),
        }


@pytest.fixture
def full(small_disk: Path) -> Iterator[Full]:
    made = Full(small_disk)
    made.fill()
    yield made
    made.reader.close()
    made.journal.close()


def test_every_input_that_only_asks_is_answered(full: Full) -> None:
    """Whatever is due, and whoever could be handed something: that waits for room."""
    asked = full.asked()
    assert asked.keys() | NEED_ROOM | NOTED | KNOCKS == set(get_args(Input)), "each kind has its place"
    for kind, (item, answer) in asked.items():
        effects = full.apply(item)
        answers = [type(effect) for effect in effects]
        assert answers == ([answer] if answer else []), kind
        assert full.ticking.rest.read_only
        assert full.ticking.rest.wake_ms == full.world.mono_ms + ROOM_AGAIN_MS


def test_all_of_them_are_answered_together(full: Full) -> None:
    asked = full.asked()
    effects = full.apply(*(item for item, _ in asked.values()))
    assert {type(effect) for effect in effects} == {answer for _, answer in asked.values() if answer}


def test_what_is_due_waits_and_nobody_s_memory_is_ahead_of_the_disk(full: Full) -> None:
    """Neither a turn nor a timer is lost, and what was refused did not happen."""
    before = full.reader.count_deliveries(), full.reader.open_turns(), full.reader.head()
    listen = (Subscribe(req=1, subscriber="new", agent=BOB, session="run-2"), Grant(2, "new", 5))
    assert [type(effect) for effect in full.apply(*listen)] == [Subscribed]
    with pytest.raises(StorageFull):
        full.apply(full.send(idempotency_key="refused"), full.asked()[Settle][0])
    full.apply(*listen)
    full.world.advance(ROOM_AGAIN_MS)
    assert full.apply() == []
    assert (full.reader.count_deliveries(), full.reader.open_turns(), full.reader.head()) == before
    full.disk.free()
    full.world.advance(ROOM_AGAIN_MS)
    handed = {effect.event_id for effect in full.apply() if isinstance(effect, Handed)}
    assert full.waiting in handed
    assert not full.ticking.rest.read_only
    again = full.apply(full.send(idempotency_key="refused"))
    assert [effect.duplicate for effect in again if isinstance(effect, Sent)] == [False]
    full.world.verify()


def test_a_gateway_that_starts_on_a_full_disk_answers_too(full: Full) -> None:
    full.journal.close()
    full.start()
    assert full.ticking.rest.read_only, "rows are left that have to go to their tables"
    test_every_input_that_only_asks_is_answered(full)
