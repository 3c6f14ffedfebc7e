"""Who asks what became of an event is told again, or that it is not there: then it is sent again."""

from copy import deepcopy
from typing import Any

import pytest

from gateway.engine.inputs import FloorRead, PageRead
from gateway.engine.inquiries import STATUS_REQUEST, STATUS_UNKNOWN
from outbox.chain import Checkpoint, genesis
from outbox.envelope import Signal, decode_payload, encode_payload
from outbox.ids import EventId, MeshId, NodeId
from outbox.kinds import Kind
from outbox.records import DeliveryState as S

MESH = MeshId("mesh-" + "x" * 38)
B = NodeId("b")


def signals(mesh: Any, node: str, what: str) -> list[EventId | None]:
    found = (decode_payload(event, Signal) for event in mesh.history(node) if event.kind == Kind.SIGNAL)
    return [signal.ref for signal in found if signal.signal == what]


@pytest.mark.parametrize("ahead", [False, True], ids=["the copy is ahead", "the original is ahead"])
def test_what_a_copy_accepted_and_its_original_refused_is_sent_again(mesh: Any, *, ahead: bool) -> None:
    """The ACK stands at a place that the node remembers, and says another thing there (seed 30084)."""
    mesh.meet()
    original = deepcopy(mesh.store("b"))
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    for _ in range(0 if ahead else 3):
        mesh.sent("b", "bob", "ann")
    mesh.pull("a", "b")
    assert mesh.delivery("a", event).state is S.ACCEPTED
    mesh.come_back("b", original)
    mesh.nodes["b"].own.shown = True  # nobody has told it yet that it forgot
    mesh.leave("b", "bob")
    mesh.pull("b", "a")
    mesh.answer("b", by="a")
    mesh.tick("b")
    page = mesh.store("b").read(genesis(MESH, B, mesh.epoch_of("b")), 1000, 1 << 30)
    mesh.tick("a", PageRead(B, page))
    mesh.live("b", "bob")
    mesh.meet()
    assert signals(mesh, "b", STATUS_UNKNOWN) == [event]
    mesh.wake("a")
    mesh.meet()
    assert mesh.delivery("a", event).state is S.ACCEPTED
    assert len(mesh.store("b").ledger(event)) == 1


def test_what_is_there_is_told_again_and_not_sent_again(mesh: Any) -> None:
    event = mesh.sent("a", "ann", "bob")
    mesh.meet()
    mesh.wake("a")
    mesh.meet()
    assert signals(mesh, "a", STATUS_REQUEST) == [event]
    assert signals(mesh, "b", STATUS_UNKNOWN) == []
    assert mesh.acks("b", event) == ["accepted", "accepted"]
    assert mesh.delivery("a", event).attempt == 1


@pytest.mark.parametrize("state", [S.EMITTED, S.PROCESSED])
def test_only_what_was_accepted_can_be_lost(routed: Any, stranger: Any, state: S) -> None:
    """Before it is accepted other proof is needed, and what has ended has ended."""
    if state is S.PROCESSED:
        routed.hear(stranger.ack(routed.event, status="processed", outcome="ok"))
    payload = encode_payload(Signal(signal=STATUS_UNKNOWN, ref=routed.event))
    routed.hear(stranger.event(kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=payload))
    assert routed.delivery("a", routed.event).state is state
    assert routed.delivery("a", routed.event).attempt == 1


def test_another_node_cannot_say_it(make_world: Any, stranger: Any) -> None:
    world = make_world("a", "b")
    world.live("a", "ann")
    world.live("b", "bob")
    event = world.sent("a", "ann", "bob")
    world.meet()
    payload = encode_payload(Signal(signal=STATUS_UNKNOWN, ref=event))
    lie = stranger.event(kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=payload)
    world.tick("a", stranger.says(lie, to=("a",)))
    assert world.delivery("a", event).state is S.ACCEPTED


def test_a_long_list_of_questions_is_asked_in_pieces(mesh: Any) -> None:
    """One piece in the transaction that passed what was unread, the rest in ticks of their own, each once."""
    mesh.share(2)
    events = [mesh.sent("b", "bob", "ann") for _ in range(5)]
    mesh.meet()
    mesh.sent("a", "ann", "bob")
    at = mesh.store("a").head()
    floor = Checkpoint(MESH, NodeId("a"), at.epoch, at.seq, at.hash, b"")
    mesh.tick("b", FloorRead("a", floor))
    asked = [signals(mesh, "b", STATUS_REQUEST)]
    while mesh.nodes["b"].engine.next_wake_ms(mesh.now()) == mesh.mono_ms:
        mesh.tick("b")
        asked.append(signals(mesh, "b", STATUS_REQUEST))
    assert [len(part) for part in asked[:3]] == [2, 4, 5]
    assert asked[-1] == events
