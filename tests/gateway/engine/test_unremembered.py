"""A sender that went back to before it asked a fallback, whose answer comes all the same."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.deliveries import DUPLICATE
from gateway.engine.doubts import POSSIBLE_DUPLICATE
from gateway.engine.own_stream import Reason
from outbox.chain import genesis
from outbox.ids import EventId, MeshId
from outbox.kinds import Kind
from outbox.records import DeliveryState

MESH = MeshId("mesh-" + "x" * 38)
S = DeliveryState
GRACE_MS = 60_000


@pytest.fixture
def guarded(make_world: Any) -> Any:
    """``bob`` lives at ``b``, ``c`` stands in for him; ``ann`` has written to him, and ``a`` is backed up."""
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob", fallback=("c",), grace_ms=GRACE_MS)
    world.stand_in("c", "bob", "b")
    world.event = world.sent("a", "ann", "bob")
    world.backup = deepcopy(world.store("a"))
    return world


def stood_in_for(world: Any) -> EventId:
    """``b`` stays away, so that ``c`` is asked, takes it and answers; returns the reply."""
    world.absent = {"b"}
    world.see("a")
    world.advance(GRACE_MS)
    world.tick("a")
    world.pull("c", "a")
    (hand,) = world.listen("c", "bob")
    reply: EventId = world.reply("c", "bob", world.event, lease_id=hand.lease_id).event_id
    return reply


def go_back(world: Any) -> None:
    """``a`` is what it was, ``b`` is there again."""
    world.absent = set()
    world.see("a")
    world.come_back("a", world.backup, Reason.RESTORE)
    world.answer("a", by="c")
    assert [row.node for row in world.store("a").obligations(world.event)] == ["b"]


def carry(world: Any) -> None:
    world.meet()
    world.advance(5_000)
    world.tick("a")
    world.meet()


def owner_answers(world: Any) -> EventId:
    """Before ``a`` reads more of ``c``."""
    world.pull("b", "a")
    (hand,) = world.listen("b", "bob")
    reply: EventId = world.reply("b", "bob", world.event, lease_id=hand.lease_id).event_id
    world.pull("a", "b")
    return reply


def states(world: Any) -> dict[str | None, DeliveryState]:
    return {row.node: row.state for row in world.store("a").obligations(world.event)}


@pytest.mark.parametrize("first", ["b", "c"])
def test_that_both_did_it_is_told_and_the_first_answer_is_dealt(guarded: Any, first: str) -> None:
    stood_in = stood_in_for(guarded)
    go_back(guarded)
    if first == "c":
        guarded.pull("a", "c")
        assert states(guarded) == {"b": S.EMITTED, "c": S.SUPERSEDED}
        assert (DUPLICATE, guarded.event) not in guarded.incidents("a")
    owned = owner_answers(guarded)
    carry(guarded)
    assert (DUPLICATE, guarded.event) in guarded.incidents("a")
    assert states(guarded) == {"b": S.REPLIED, "c": S.SUPERSEDED}
    hands = [hand.event_id for hand in guarded.listen("a", "ann")]
    assert hands == [owned if first == "b" else stood_in]


def test_the_next_attempt_may_go_there_as_if_it_had_been_asked_before(guarded: Any) -> None:
    stood_in_for(guarded)
    go_back(guarded)
    guarded.pull("a", "c")
    guarded.absent = {"b"}
    guarded.see("a")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.pull("c", "a")
    guarded.pull("a", "c")
    assert states(guarded) == {"b": S.SUPERSEDED, "c": S.PROCESSED}, "it has said so before"
    assert guarded.row("c", guarded.event).delivery_count == 1
    assert (DUPLICATE, guarded.event) not in guarded.incidents("a")


def test_who_has_forgotten_nothing_knows_whom_it_asked(guarded: Any, stranger: Any) -> None:
    guarded.owners["bob"] = guarded.owners["bob"].__class__(
        agent="bob", node="b", owner_epoch=1, status="active", fallback=("x",)
    )
    guarded.see()
    guarded.tick("a", stranger.says(stranger.ack(guarded.event), to=("a",)))
    assert states(guarded) == {"b": S.EMITTED}


def test_nor_does_who_speaks_for_nobody_count(guarded: Any, stranger: Any) -> None:
    go_back(guarded)
    guarded.tick("a", stranger.says(stranger.ack(guarded.event), stranger.ack("evt_" + "0" * 32), to=("a",)))
    assert states(guarded) == {"b": S.EMITTED}
    guarded.own("bob", "b", 2, active=False)
    guarded.see()
    guarded.tick("a", stranger.says(stranger.ack(guarded.event), to=("a",)))
    assert states(guarded) == {"b": S.EMITTED}


def test_of_what_is_for_several_all_nodes_are_known(make_world: Any, stranger: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob")
    world.live("c", "cid")
    world.own("cid", "x", 2)
    event = world.sent("a", "ann", "bob,cid")
    world.event = event
    world.come_back("a", world.store("a"), Reason.RESTORE)
    world.answer("a", by="b")
    before = states(world)
    world.tick("a", stranger.says(stranger.ack(event, outcome="ok"), to=("a",)))
    assert states(world) == before


def test_so_it_is_where_the_owner_had_taken_it_before_the_backup(guarded: Any, stranger: Any) -> None:
    """A fallback that a lost history has asked: its answer comes first, and the owner's is the second one."""
    guarded.pull("b", "a")
    guarded.pull("a", "b")
    (hand,) = guarded.listen("b", "bob")
    guarded.come_back("a", guarded.store("a"), Reason.RESTORE)
    guarded.answer("a", by="b")
    guarded.own("bob", "b", fallback=("x",))
    guarded.see()
    taken = stranger.ack(guarded.event, outcome="ok", engaged_at="2026-11-27T12:00:00.000Z")
    reply = replace(stranger.event(), kind=Kind.REPLY, corr_id=guarded.event)
    reply = replace(reply, source_agent_id="bob", to_agent_id="ann")
    guarded.tick("a", stranger.says(reply, taken, to=("a",)))
    assert guarded.delivery("a", guarded.event).attempt == 1
    guarded.reply("b", "bob", guarded.event, lease_id=hand.lease_id)
    guarded.pull("a", "b")
    assert (DUPLICATE, guarded.event) in guarded.incidents("a")
    assert [hand.event_id for hand in guarded.listen("a", "ann")] == [reply.event_id]


def test_an_answer_that_was_dealt_before_another_one_was_heard_of_stays_the_first(
    guarded: Any, stranger: Any
) -> None:
    guarded.pull("b", "a")
    (hand,) = guarded.listen("b", "bob")
    first = guarded.reply("b", "bob", guarded.event, lease_id=hand.lease_id).event_id
    guarded.pull("a", "b")
    guarded.come_back("a", guarded.store("a"), Reason.RESTORE)
    guarded.answer("a", by="b")
    guarded.own("bob", "b", fallback=("x",))
    guarded.see()
    reply = replace(stranger.event(), kind=Kind.REPLY, corr_id=guarded.event)
    reply = replace(reply, source_agent_id="bob", to_agent_id="ann")
    guarded.tick("a", stranger.says(reply, to=("a",)))
    guarded.meet()
    assert [hand.event_id for hand in guarded.listen("a", "ann")] == [first]
    assert guarded.row("a", reply.event_id).error == "superseded"


def test_who_stood_in_and_forgot_so_tells_that_its_own_message_may_be_done_twice(guarded: Any) -> None:
    """``ann`` and who stands in for ``bob`` live at one node."""
    guarded.own("bob", "b", fallback=("a",), grace_ms=GRACE_MS)
    guarded.see()
    guarded.stand_in("a", "bob", "b")
    guarded.backup = deepcopy(guarded.store("a"))
    guarded.absent = {"b"}
    guarded.see("a")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    (hand,) = guarded.listen("a", "bob")
    guarded.settle("a", "bob", guarded.event, lease_id=hand.lease_id)
    guarded.come_back("a", guarded.backup, Reason.RESTORE)
    guarded.answer("a", by="c")
    guarded.see("a")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    assert [hand.event_id for hand in guarded.listen("a", "bob")] == [guarded.event]
    assert (POSSIBLE_DUPLICATE, guarded.event) in guarded.incidents("a")
    new = guarded.sent("a", "ann", "bob")
    guarded.tick("a")
    assert (POSSIBLE_DUPLICATE, new) not in guarded.incidents("a")


def skip_what_c_said(world: Any) -> None:
    """``a`` stands in another history of that epoch, and goes on where ``c`` does."""
    world.come_back("c", world.store("c"), Reason.RESTORE)
    world.answer("c", by="a")
    world.store("a").begin()
    world.store("a").put_cursor("c", genesis(MESH, "c", world.epoch_of("c")))
    world.store("a").commit()


@pytest.mark.parametrize("done", [True, False])
def test_what_was_done_in_an_epoch_that_nobody_reads_is_said_again(guarded: Any, done: bool) -> None:
    """The fallback did it, and its sender did not hear so and sent it on to the owner that is back."""
    guarded.absent = {"b"}
    guarded.see("a")
    guarded.advance(GRACE_MS)
    guarded.tick("a")
    guarded.event = guarded.sent("a", "ann", "bob")
    guarded.pull("c", "a")
    hands = guarded.listen("c", "bob", credit=5) if done else []
    for hand in hands:
        guarded.settle("c", "bob", hand.event_id, lease_id=hand.lease_id)
    skip_what_c_said(guarded)
    guarded.pull("a", "c")
    (row,) = guarded.store("a").obligations(guarded.event)
    guarded.store("a").begin()
    guarded.store("a").put_delivery(replace(row, state=S.RETRY_PENDING, next_at_ms=guarded.wall_ms))
    guarded.store("a").commit()
    guarded.absent = {"c"}
    guarded.see("a")
    guarded.restart("a")
    guarded.tick("a")
    assert states(guarded) == {"b": S.EMITTED, "c": S.SUPERSEDED}
    owner_answers(guarded)
    guarded.meet()
    assert ((DUPLICATE, guarded.event) in guarded.incidents("a")) is done
