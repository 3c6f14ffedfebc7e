"""What a new epoch carries over is carried over part by part, and it makes no difference."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.courier.limits import CourierLimits
from gateway.engine.policy import Policy
from outbox.envelope import decode_header
from outbox.ids import EventId, NodeId
from outbox.memory import MemoryStore
from outbox.records import DeliveryState, Identity
from stateroom.view import NodeView

A, B = NodeId("a"), NodeId("b")
STEPS = ["tick", "restart", "meet", "send", "expire", "again", "settle", "rumour"]


def forgot(make_world: Any, counting: Any, sent: int, rows: int) -> Any:
    """``a`` has so many messages for ``bob`` on their way, has forgotten how far ``b`` has read them, and has
    sent as many to ``amy``, who has ended half of them, where nobody could see it. A new epoch has begun."""
    policy, limits = Policy(errand_rows=rows), CourierLimits(max_depth=1_000)
    world = make_world("b", limits=limits, policy=policy)
    world.join("a", counting(MemoryStore(Identity(world.view().mesh, A, world.epoch_of("b")))))
    world.live("a", "ann", "amy")
    world.live("b", "bob")
    for name in (A, B):
        world.members[name] = NodeView(node=name, public_key=b"k" * 32, role="member")
    world.see()
    world.meet()
    lives = (60_000, 3_600_000)
    world.events = [world.sent("a", "ann", "bob", expires_in_ms=lives[at % 2]) for at in range(sent)]
    backup = deepcopy(world.store("a"))
    world.sent("a", "ann", "bob")
    world.pull("b", "a")
    world.come_back("a", backup)
    world.unseen = [world.sent("a", "ann", "amy") for _ in range(sent)]
    for event in world.unseen[::2]:
        world.settle("a", "amy", event)
    world.store("a").most = 0
    world.answer("a", by="b")
    return world


def work_off(world: Any) -> None:
    while world.store("a").errands():
        world.tick("a")
    for _ in range(4):
        world.meet()
        world.rumour()
        world.advance(5_000)
        world.tick("a")
    world.meet()


def told(world: Any) -> list[EventId]:
    """What the outbox of ``a`` shows of its own messages, whatever their attempt."""
    pages = world.pages_of("a")
    headers = [decode_header(entry.header) for page in pages for entry in page.entries]
    return sorted({header.event_id for header in headers if header.kind == "message"})


@pytest.mark.parametrize("restarts", [False, True])
def test_no_tick_carries_over_more_than_its_share(make_world: Any, counting: Any, *, restarts: bool) -> None:
    most = []
    for sent in (40, 160):
        world = forgot(make_world, counting, sent, rows=10)
        world.run_errands("a", restarts=restarts)
        most.append(world.store("a").most)
        work_off(world)
        assert {*world.events, *world.unseen} <= {*told(world)}
        assert world.delivery("a", world.events[-1]).state is DeliveryState.ACCEPTED
        attempts = [
            (header.event_id, header.attempt)
            for page in world.pages_of("a")
            for header in (decode_header(entry.header) for entry in page.entries)
        ]
        assert len(attempts) == len({*attempts})
    assert most[1] <= most[0]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(STEPS), max_size=10))
def test_whatever_comes_meanwhile_it_ends_as_if_all_had_been_carried_over_at_once(
    make_world: Any, counting: Any, steps: list[str]
) -> None:
    found = []
    for rows in (1, 1_000):
        world = forgot(make_world, counting, 6, rows)
        for at, step in enumerate(steps):
            happens(world, step, at)
        work_off(world)
        every = (*world.events, *world.unseen)
        states = [world.delivery("a", event).state for event in every]
        shown = [event in told(world) for event in every]
        at_b = [[row.state for row in world.store("b").ledger(event)] for event in every]
        found.append((states, shown, at_b))
        assert all(shown)
    assert found[0] == found[1]


def happens(world: Any, step: str, at: int) -> None:
    match step:
        case "restart":
            world.restart("a")
        case "meet":
            world.meet()
        case "rumour":
            world.rumour()
        case "send":
            world.events.append(world.sent("a", "ann", "bob"))
        case "expire":
            world.advance(61_000)
            world.tick("a")
        case "again":
            world.come_back("a", deepcopy(world.store("a")))
            world.answer("a", by="b")
        case "settle":
            event = world.unseen[at % len(world.unseen)]
            world.settle("a", "amy", event)
        case _:
            world.tick("a")
