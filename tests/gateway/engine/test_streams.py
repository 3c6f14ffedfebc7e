"""What a page is to its reader, and who is to blame when it is nothing good."""

from typing import Any

from msgspec.structs import replace

from gateway.engine.effects import CursorMoved, IncidentChanged, StreamBroken
from gateway.engine.inputs import FloorRead, PageRead, RelayCaught
from gateway.engine.own_stream import Reason
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.engine.standstill import STALLED
from gateway.engine.streams import RELAY_TAMPERED, Verdict, judge
from outbox.chain import Excerpt, Head, Stub, genesis
from outbox.ids import Epoch, NodeId, Seq
from outbox.kinds import Kind
from outbox.readership import excerpt, whole
from outbox.records import DeliveryState

EPOCH = Epoch("000001-0123456789ab")
LATER = Epoch("000002-0123456789ab")
ANOTHER = Epoch("000001-ffffffffffff")
RELAY = NodeId("seed")


def sent_page(world: Any) -> Excerpt:
    world.sent("a", "ann", "bob")
    return whole(world.page("b", "a"))


def verdict(world: Any, page: Excerpt, start: Head | None = None) -> Verdict:
    origin = genesis(world.store("b").identity().mesh, NodeId("a"), EPOCH)
    return judge(start or origin, page, NodeId("b")).verdict


def test_the_verdicts(world: Any) -> None:
    page = sent_page(world)
    head = page.checkpoint.head
    entry = page.entries[0]
    mute = replace(page, entries=(Stub(entry.seq, entry.header, b"\x00" * 32),))
    assert verdict(world, page) is Verdict.FOLLOWS
    assert verdict(world, page, head) is Verdict.READ_BEFORE
    assert verdict(world, page, replace(head, epoch=LATER)) is Verdict.READ_BEFORE
    assert verdict(world, page, replace(head, epoch=ANOTHER)) is Verdict.FOREIGN_EPOCH
    assert verdict(world, page, replace(head, hash=b"\x01" * 32)) is Verdict.BROKEN
    assert verdict(world, page, replace(head, seq=Seq(0), hash=b"\x01" * 32)) is Verdict.BROKEN
    assert verdict(world, replace(page, entries=())) is Verdict.BROKEN
    assert verdict(world, mute) is Verdict.BROKEN


def test_a_body_that_was_not_sent_here_is_no_reason_to_stop(world: Any) -> None:
    world.join("c", type(world.store("a"))(replace(world.store("a").identity(), node=NodeId("c"))))
    world.sent("a", "ann", "bob")
    page = world.page("c", "a")
    world.tick("c")
    (moved,) = (effect for effect in world.tick("c", PageRead("a", excerpt(page, NodeId("c")))))
    assert moved == CursorMoved("a", page.checkpoint.head)
    effects = world.tick("b", PageRead("a", excerpt(page, NodeId("c"))))
    (broken,) = (effect for effect in effects if isinstance(effect, StreamBroken))
    assert broken.code == Verdict.WITHHELD
    assert world.store("b").cursor("a") is None


def test_a_relay_is_blamed_for_what_it_brings_and_the_writer_is_not(world: Any) -> None:
    page = sent_page(world)
    spoilt = replace(page, entries=(replace(page.entries[0], body=b"other"),))
    effects = world.tick("b", PageRead("a", spoilt, relay=RELAY, link=4))
    assert [effect for effect in effects if isinstance(effect, StreamBroken)] == [
        StreamBroken("a", "broken_chain", "entries up to 1 do not hash to their checkpoint", RELAY, 4)
    ]
    incident = world.store("b").incident(RELAY_TAMPERED, RELAY)
    assert incident is not None
    assert incident.closed_at_ms is None
    assert "outbox of a" in incident.detail
    assert world.store("b").quarantined() == []
    world.tick("b", PageRead("a", page, relay=NodeId("other"), link=5))
    assert world.store("b").cursor("a") == page.checkpoint.head


def test_what_a_link_finds_out_by_itself_is_an_incident_too(world: Any) -> None:
    effects = world.tick("b", RelayCaught(RELAY, NodeId("a"), "bad_checkpoint", "not signed"))
    assert effects == [
        IncidentChanged(RELAY_TAMPERED, RELAY, open=True, detail="outbox of a, bad_checkpoint: not signed")
    ]


def test_a_stall_is_an_incident_until_it_moves(world: Any) -> None:
    assert world.tick("b", StreamStalled("a", RELAY)) == [
        IncidentChanged(STALLED, "a", open=True, detail="seed has more of it than comes")
    ]
    (closed,) = world.tick("b", StreamFlows("a"))
    assert isinstance(closed, IncidentChanged)
    assert not closed.open


def test_who_brought_an_event_and_its_answer_is_kept(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.tick("b", PageRead("a", whole(world.page("b", "a")), relay=RELAY, link=4))
    assert world.row("b", event).via == RELAY
    world.tick("a", PageRead("b", whole(world.page("a", "b")), relay=RELAY, link=4))
    assert world.delivery("a", event).via == RELAY
    direct = world.sent("a", "ann", "bob")
    world.meet()
    assert world.row("b", direct).via is None
    assert world.delivery("a", direct).via is None


# --- what was passed unread


def end_unread(world: Any) -> str:
    """``b`` has ended what ``a`` knows to be accepted, and said so."""
    event = world.sent("a", "ann", "bob")
    world.meet()
    world.settle("b", "bob", event)
    assert world.delivery("a", event).state is DeliveryState.ACCEPTED
    return event


def test_who_goes_on_at_a_floor_asks_for_the_ends_that_it_may_have_passed(world: Any) -> None:
    """The end stood below it: its sender kept an incident open until it expired (seed 810016)."""
    event = end_unread(world)
    (*_, page) = world.pages_of("b")
    world.tick("a", FloorRead(NodeId("b"), page.checkpoint))
    assert ("history_missed", "b") in world.incidents("a")
    world.meet()
    assert world.delivery("a", event).state is DeliveryState.PROCESSED


def test_so_does_who_goes_on_in_a_new_epoch(mesh: Any) -> None:
    event = end_unread(mesh)
    mesh.come_back("b", mesh.store("b"), Reason.FAILED_SYNC)
    mesh.answer("b", by="a")
    start = genesis(mesh.store("b").identity().mesh, NodeId("b"), mesh.epoch_of("b"))
    mesh.tick("a", PageRead(NodeId("b"), mesh.store("b").read(start, 1000, 1 << 30)))
    assert mesh.delivery("a", event).state is DeliveryState.ACCEPTED
    mesh.meet()
    assert mesh.delivery("a", event).state is DeliveryState.PROCESSED


def test_who_has_read_the_epoch_before_to_its_end_asks_for_nothing(mesh: Any) -> None:
    mesh.sent("a", "ann", "bob")
    mesh.meet()
    mesh.come_back("b", mesh.store("b"), Reason.FAILED_SYNC)
    mesh.answer("b", by="a")
    mesh.meet()
    assert mesh.said("a", Kind.SIGNAL) == []
