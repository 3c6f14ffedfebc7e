"""A dead letter is sent again as a new event, once; or leaves the list, and never the trace."""

from typing import Any

import pytest

from gateway.engine.deadletters import Dismiss, Redrive
from gateway.engine.redrive import NEWEST
from outbox.kinds import Kind


@pytest.fixture
def buried(world: Any) -> Any:
    """``ann`` has written to ``bob`` and given up, since nobody owned him."""
    world.own("bob", "b", active=False)
    world.see()
    world.event = world.sent(
        "a",
        "ann",
        "bob",
        payload=b'{"n":7}',
        thread_id="t",
        priority=1,
        schema="n@v1",
        traceparent=f"00-{'a' * 32}-{'b' * 16}-00",
    )
    return world


def redrive(world: Any, event: str, **rest: Any) -> Any:
    return world.ask("a", Redrive(req=90, event_id=event, **rest))


def listed(world: Any) -> list[str]:
    return [row.event_id for row in world.store("a").dead_letters(NEWEST, 10)]


def test_it_goes_out_again_as_a_new_event_that_names_the_old_one(buried: Any) -> None:
    buried.own("bob", "b")
    buried.see()
    answer = redrive(buried, buried.event, expires_in_ms=60_000)
    old, new = buried.said("a", Kind.MESSAGE)
    assert answer.event_id == new.event_id != old.event_id
    assert (new.redrive_of, bytes(new.payload), new.thread_id, new.priority) == (
        old.event_id,
        b'{"n":7}',
        "t",
        1,
    )
    assert new.idempotency_key is None
    assert (new.schema, new.trace.traceparent) == ("n@v1", old.trace.traceparent)
    assert old.trace.traceparent is not None
    assert (listed(buried), buried.incidents("a")) == ([], [])
    buried.meet()
    assert buried.acks("b", new.event_id) == ["accepted"]
    again = redrive(buried, buried.event)
    assert (again.event_id, again.duplicate) == (new.event_id, True)


def test_what_cannot_arrive_now_is_not_sent_again(buried: Any) -> None:
    assert redrive(buried, buried.event).code == "not_found"
    alive = buried.sent("a", "ann", "ann")
    assert redrive(buried, alive).code == "not_found"
    assert redrive(buried, "evt_" + "9" * 32).code == "not_found"
    buried.own("bob", "b")
    buried.see()
    buried.leave("a", "ann")
    assert redrive(buried, buried.event).code == "not_found"
    assert listed(buried) == [buried.event]


def test_what_leaves_the_list_stays_in_the_journal(buried: Any) -> None:
    other = buried.sent("a", "ann", "bob")
    assert buried.ask("a", Dismiss(req=91, event_ids=(other,))).count == 1
    assert listed(buried) == [buried.event]
    assert buried.incidents("a") == [("dead_letter", buried.event)]
    assert buried.ask("a", Dismiss(req=92, before_ms=buried.wall_ms)).count == 0
    assert buried.ask("a", Dismiss(req=93, before_ms=buried.wall_ms + 1)).count == 1
    assert listed(buried) == []
    for event in (buried.event, other):
        assert buried.delivery("a", event).dismissed_at_ms is not None
        assert buried.store("a").events_about(event)
    assert buried.ask("a", Dismiss(req=94, event_ids=("evt_" + "9" * 32,))).code == "not_found"


def test_the_old_ones_are_found_behind_however_many_young_ones(
    buried: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.engine.redrive.DISMISSED_MAX", 2)
    older = [buried.event, buried.sent("a", "ann", "bob"), buried.sent("a", "ann", "bob")]
    buried.advance(60_000)
    noon_ms = buried.wall_ms
    young = [buried.sent("a", "ann", "bob") for _ in range(3)]
    counts = [buried.ask("a", Dismiss(req=95 + n, before_ms=noon_ms)).count for n in range(3)]
    assert counts == [2, 1, 0], "asked again, it goes on"
    assert sorted(listed(buried)) == sorted(young)
    assert all(buried.delivery("a", event).dismissed_at_ms is not None for event in older)


def test_only_the_nodes_that_did_not_take_it_get_it_again(make_world: Any) -> None:
    world = make_world("a", "b", "c")
    world.live("a", "ann")
    world.live("b", "bob")
    world.live("c", "cat")
    event = world.sent("a", "ann", "bob,cat")
    world.leave("b", "bob")
    world.meet()
    world.live("b", "bob")
    answer = redrive(world, event)
    assert [row.node for row in world.store("a").obligations(answer.event_id)] == ["b"]
    world.meet()
    assert world.acks("b", answer.event_id) == ["accepted"]
