"""Events that wait for a record of the room: held, judged by each view, never for ever."""

from itertools import count
from typing import Any

import pytest

from gateway.engine import held as held_module
from gateway.engine.effects import Handed, IncidentChanged
from gateway.engine.held import Held
from gateway.engine.inputs import AddAgent
from outbox.records import TurnState


@pytest.fixture
def newcomer(make_world: Any) -> Any:
    """``ann`` sends from ``a``, and ``b`` has not heard of her."""
    world = make_world("a", "b")
    world.live("b", "bob")
    known = world.owners.copy()
    world.live("a", "ann")
    mine, world.owners = world.owners, known
    world.see("b")
    world.listen("b", "bob")
    world.ann = mine["ann"]
    return world


def test_an_event_is_handed_over_once_its_senders_owner_is_known(newcomer: Any, only: Any) -> None:
    event = newcomer.sent("a", "ann", "bob")
    assert only(newcomer.pull("b", "a"), Handed) == []
    assert newcomer.acks("b", event) == ["accepted"]
    assert newcomer.row("b", event).state is TurnState.HELD
    assert newcomer.see("b") == []
    assert newcomer.row("b", event).state is TurnState.HELD
    newcomer.owners["ann"] = newcomer.ann
    (hand,) = newcomer.see("b")[:1]
    assert hand.event_id == event
    newcomer.advance(11 * 60_000)
    newcomer.settle("b", "bob", event, lease_id=hand.lease_id)
    assert newcomer.acks("b", event) == ["accepted", "ok"]


def test_a_restart_in_between_forgets_nothing_and_looks_at_the_new_view_at_once(
    newcomer: Any, only: Any
) -> None:
    event = newcomer.sent("a", "ann", "bob")
    newcomer.pull("b", "a")
    newcomer.owners["ann"] = newcomer.ann
    newcomer.restart("b")
    assert newcomer.nodes["b"].engine.next_wake_ms(newcomer.now()) == newcomer.mono_ms
    newcomer.tick("b")
    newcomer.advance(11 * 60_000)
    newcomer.tick("b")
    assert newcomer.row("b", event).state is TurnState.QUEUED
    assert [hand.event_id for hand in newcomer.listen("b", "bob", "socket-2")] == [event]


def test_held_too_long_is_refused_and_a_dead_letter(newcomer: Any) -> None:
    event = newcomer.sent("a", "ann", "bob")
    newcomer.pull("b", "a")
    newcomer.restart("b")
    start_ms = newcomer.wall_ms
    newcomer.wake("b")
    assert newcomer.wall_ms in {start_ms, start_ms + newcomer.policy.hold_ms}
    newcomer.wake("b")
    assert newcomer.wall_ms == start_ms + newcomer.policy.hold_ms
    assert newcomer.acks("b", event) == ["accepted", "refused: unknown_source"]
    newcomer.pull("a", "b")
    assert newcomer.delivery("a", event).state == "dead_letter"
    newcomer.meet()
    assert newcomer.acks("b", event) == ["accepted", "refused: unknown_source"]


def test_held_and_expired_fails_as_expired(newcomer: Any) -> None:
    event = newcomer.sent("a", "ann", "bob", expires_in_ms=5_000)
    newcomer.pull("b", "a")
    newcomer.advance(11 * 60_000)
    newcomer.tick("b")
    assert newcomer.acks("b", event) == ["accepted", "failed: expired"]


def test_nobody_may_answer_or_return_what_is_held(newcomer: Any) -> None:
    event = newcomer.sent("a", "ann", "bob")
    newcomer.pull("b", "a")
    assert newcomer.settle("b", "bob", event).code == "conflict"
    assert newcomer.nack("b", "bob", event, "lease").code == "conflict"
    assert newcomer.reply("b", "bob", event).code == "conflict"
    assert newcomer.row("b", event).state is TurnState.HELD


def test_a_record_that_names_another_node_refuses_what_is_held(newcomer: Any, only: Any) -> None:
    event = newcomer.sent("a", "ann", "bob")
    newcomer.pull("b", "a")
    newcomer.own("ann", "c", 1)
    effects = newcomer.see("b")
    assert [change.kind for change in only(effects, IncidentChanged)] == ["foreign_agent"]
    assert newcomer.acks("b", event) == ["accepted", "refused: foreign_agent"]


def test_a_view_with_only_an_older_record_decides_nothing(newcomer: Any) -> None:
    newcomer.own("ann", "c", 1, active=False)
    newcomer.see("a", "b")
    newcomer.leave("a", "ann")
    assert newcomer.ask("a", AddAgent(50, "ann", b"")).owner_epoch == 2
    event = newcomer.sent("a", "ann", "bob")
    newcomer.pull("b", "a")
    newcomer.see("b")
    assert newcomer.row("b", event).state is TurnState.HELD
    newcomer.own("ann", "a", 2)
    newcomer.see("b")
    assert newcomer.row("b", event).state is TurnState.LEASED


def test_the_sender_can_still_give_up(newcomer: Any) -> None:
    event = newcomer.sent("a", "ann", "bob", expires_in_ms=60_000)
    newcomer.pull("b", "a")
    newcomer.advance(60_000)
    newcomer.tick("a")
    newcomer.wall_ms -= 30_000
    newcomer.pull("b", "a")
    assert newcomer.acks("b", event) == ["accepted", "failed: cancelled"]
    newcomer.owners["ann"] = newcomer.ann
    assert newcomer.see("b") == []


def test_strangers_cannot_fill_the_memory(newcomer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "HELD_MAX", 2)
    events = [newcomer.sent("a", "ann", "bob") for _ in range(3)]
    newcomer.pull("b", "a")
    assert [newcomer.acks("b", event) for event in events] == [
        ["accepted"],
        ["accepted"],
        ["refused: inbox_full"],
    ]


def test_what_is_dropped_is_forgotten_with_its_sender() -> None:
    held, ids = Held(), count()
    first, second, third = (f"evt_{next(ids):032x}" for _ in range(3))
    held.add(first, "ann")
    held.add(second, "bob")
    held.add(third, "ann")
    assert held
    assert held.turns() == [first, third, second]
    held.drop(first)
    held.drop(first)
    held.drop(second)
    assert held.turns() == [third]
    held.drop(third)
    assert not held
    assert held.turns() == []


def test_what_an_agent_has_sent_is_to_be_judged_once_for_each_word_about_it() -> None:
    held, turns = Held(), [f"evt_{at:032x}" for at in range(6)]
    for at, turn in enumerate(turns):
        held.add(turn, ("ann", "bob")[at % 2])
    assert not held.look_at(lambda _: False)
    assert held.look_at(lambda agent: agent == "ann")
    assert held.due(2) == [turns[0], turns[2]]
    assert (held.is_due(turns[2]), held.is_due(turns[4]), held.is_due(turns[1])) == (False, True, False)
    assert held.look_at(lambda agent: agent == "bob")
    held.drop(turns[3])
    assert held.due(9) == [turns[4], turns[1], turns[5]]
    assert held.due(9) == []
