"""Who has forgotten takes back and asks in parts; the rest of it is in ``test_recall``."""

from copy import deepcopy
from typing import Any

import pytest

from gateway.courier.limits import CourierLimits
from gateway.engine.effects import Handed
from gateway.engine.inputs import FloorRead
from gateway.engine.limits import RECALL_AGAIN_MS
from gateway.engine.own_stream import Reason
from gateway.engine.policy import Policy
from outbox.envelope import Signal, decode_payload
from outbox.ids import MeshId, NodeId
from outbox.kinds import Kind, Outcome
from outbox.memory import MemoryStore
from outbox.recall import RECALL, Recall
from outbox.records import Identity, TurnState
from stateroom.view import NodeView

MESH = MeshId("mesh-" + "x" * 38)
A, B = NodeId("a"), NodeId("b")


def busy(make_world: Any, counting: Any, turns: int, rows: int) -> Any:
    """``bob`` at ``b`` has so many messages of ``ann`` in hand, and ended every other one, which ``b`` has
    forgotten since."""
    world = make_world("a", limits=CourierLimits(max_depth=1_000), policy=Policy(errand_rows=rows))
    world.join("b", counting(MemoryStore(Identity(MESH, B, world.epoch_of("a")))))
    world.live("a", "ann")
    world.live("b", "bob")
    for name in (A, B):
        world.members[name] = NodeView(node=name, public_key=b"k" * 32, role="member")
    world.see()
    world.events = [world.sent("a", "ann", "bob") for _ in range(turns)]
    world.pull("b", "a")
    world.hands = world.listen("b", "bob", credit=turns)
    backup = deepcopy(world.store("b"))
    for hand in world.hands[::2]:
        world.settle("b", "bob", hand.event_id, lease_id=hand.lease_id)
    world.meet()
    world.come_back("b", backup, Reason.RESTORE)
    world.store("b").most = 0
    return world


def rows(world: Any) -> list[Any]:
    return [world.row("b", event) for event in world.events]


def questions(world: Any) -> list[Recall]:
    signals = [event for event in world.history("b") if event.kind == Kind.SIGNAL]
    return [decode_payload(e, Recall) for e in signals if decode_payload(e, Signal).signal == RECALL]


# --- what was in hand


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_takes_back_more_than_its_share(make_world: Any, counting: Any, *, restarts: bool) -> None:
    most, ends = [], []
    for turns, share in ((40, 5), (160, 5), (160, 1_000)):
        world = busy(make_world, counting, turns, share)
        world.answer("b", by="a")
        assert any(row.lease_id for row in rows(world)) is (share < turns)
        world.run_errands("b", restarts=restarts)
        most.append(world.store("b").most)
        ends.append([(row.state, row.lease_id, row.session, row.delivery_count) for row in rows(world)])
        assert {event for asked in questions(world) for event in asked.open} == {*world.events}
    assert most[1] <= most[0] < most[2]
    assert ends[1] == ends[2]
    assert {*ends[1]} == {(TurnState.QUEUED, None, None, 1)}


@pytest.mark.parametrize("restarts", [False, True])
def test_nobody_has_what_is_taken_back_whatever_its_row_says_still(
    make_world: Any, counting: Any, *, restarts: bool
) -> None:
    world = busy(make_world, counting, 20, 1)
    world.answer("b", by="a")
    if restarts:
        world.restart("b")
    for hand in world.hands:
        assert world.settle("b", "bob", hand.event_id, lease_id=hand.lease_id).code == "conflict"
    assert world.listen("b", "bob", session="run-1", credit=50) == []
    world.advance(10 * 60_000)
    assert not [effect for effect in world.tick("b") if isinstance(effect, Handed)]
    while world.store("b").errands() or world.store("b").doubts():
        for name in ("a", "b"):
            world.tick(name)
        world.meet()
    ended, open_ = rows(world)[::2], rows(world)[1::2]
    assert {(row.state, row.outcome, row.delivery_count) for row in ended} == {
        (TurnState.DONE, Outcome.OK, 1)
    }
    assert {(row.state, row.delivery_count) for row in open_} == {(TurnState.LEASED, 2)}


# --- asked again


def passed(world: Any) -> None:
    """``a`` goes on behind all that ``b`` has written, and says so; ``b`` has read ``a`` to its end."""
    (*_, page) = world.pages_of("b")
    world.tick("a", FloorRead(B, page.checkpoint))
    world.rumour()
    world.pull("b", "a")


@pytest.mark.parametrize("restarts", [False, True])
def test_who_is_asked_again_is_asked_in_parts(make_world: Any, counting: Any, *, restarts: bool) -> None:
    ends = []
    for turns, share in ((160, 5), (160, 1_000)):
        world = busy(make_world, counting, turns, share)
        world.answer("b", by="a")
        world.run_errands("b", restarts=False)
        passed(world)
        world.run_errands("b", restarts=False)
        before = len(questions(world))
        world.advance(RECALL_AGAIN_MS)
        world.tick("b")
        assert len(questions(world)) == before + 1
        assert bool(world.store("b").errands()) is (share < turns)
        world.run_errands("b", restarts=restarts)
        asked = questions(world)[before:]
        assert [one.more for one in asked] == [True] * (len(asked) - 1) + [False]
        assert sorted(event for one in asked for event in one.open) == world.events
        assert len({one.read for one in asked}) == 1
        assert max(len(one.open) for one in asked) <= share
        while world.store("b").doubts():
            for name in ("a", "b"):
                world.tick(name)
            world.meet()
        ends.append([(row.state, row.outcome, row.delivery_count) for row in rows(world)])
    assert ends[0] == ends[1]
    assert ends[0] == [(TurnState.DONE, Outcome.OK, 1), (TurnState.QUEUED, None, 1)] * 80


def test_who_answers_while_it_is_asked_again_is_asked_no_more(make_world: Any, counting: Any) -> None:
    world = busy(make_world, counting, 20, 1)
    world.answer("b", by="a")
    world.run_errands("b", restarts=False)
    world.pull("a", "b")
    world.rumour()
    world.pull("b", "a")
    world.advance(RECALL_AGAIN_MS)
    world.tick("b")
    assert ("again", A) in {(row.kind, row.subject) for row in world.store("b").errands()}
    world.run_errands("a", restarts=False)
    world.pull("b", "a")
    before = len(questions(world))
    world.run_errands("b", restarts=False)
    assert world.store("b").doubts() == {}
    assert len(questions(world)) == before
