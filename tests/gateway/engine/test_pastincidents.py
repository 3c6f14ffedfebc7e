"""What tells of the past stays open until somebody has seen it, or until nobody could look it up any more."""

from typing import Any

import pytest

from gateway.engine import pastincidents
from gateway.engine.closing import CloseIncidents
from gateway.engine.inputs import Prune
from gateway.engine.pastincidents import FORGOTTEN, PAST
from gateway.judging.correspondence import CORRESPONDENCES
from outbox.records import Incident

_ENDS_WITH_ITS_REASON = {
    "never_accepted",
    "accepted_not_processed",
    "dead_letter",
    "inbox_full",
    "stream_stalled",
    "dead_reader",
    "blobs_full",
    "fork",
    "maintenance",
}
_OVER_WHEN_TOLD = {"node_revoked", "rollback"}


def note(world: Any, *incidents: tuple[str, str]) -> None:
    store = world.store("a")
    store.begin()
    for kind, subject in incidents:
        store.put_incident(Incident(kind=kind, subject=subject, opened_at_ms=world.wall_ms))
    store.commit()


def close(world: Any, **which: Any) -> Any:
    return world.ask("a", CloseIncidents(req=next(world.reqs), **which))


def test_every_kind_that_a_gateway_opens_ends_in_one_way() -> None:
    opened = {kind for kind, row in CORRESPONDENCES.items() if row.seen != "report"}
    ways = (PAST, _ENDS_WITH_ITS_REASON, _OVER_WHEN_TOLD)
    assert set().union(*ways) == opened
    assert sum(len(way) for way in ways) == len(opened)
    assert PAST | {"dead_letter"} == FORGOTTEN


def test_an_operator_closes_what_was_seen(world: Any) -> None:
    note(world, ("turn_failed", "x"), ("possible_duplicate", "x"), ("turn_failed", "y"), ("dead_letter", "x"))
    assert close(world, subjects=("x",), kind="turn_failed").count == 1
    assert close(world, subjects=("x",)).count == 1
    assert world.incidents("a") == [("dead_letter", "x"), ("turn_failed", "y")]
    assert close(world, kind="quarantined").count == 0
    assert close(world, before_ms=world.wall_ms).count == 0
    assert close(world, before_ms=world.wall_ms + 1).count == 1
    assert world.incidents("a") == [("dead_letter", "x")]


def test_what_ends_with_its_reason_is_nobodys_to_close(world: Any) -> None:
    note(world, *((kind, "x") for kind in sorted(_ENDS_WITH_ITS_REASON)), ("turn_failed", "y"))
    refused = close(world, subjects=("y", "x"))
    assert refused.code == "not_found"
    assert len(world.incidents("a")) == len(_ENDS_WITH_ITS_REASON) + 1, "all or nothing"
    assert close(world, subjects=("never heard of",)).code == "not_found"


def test_what_was_closed_opens_again_when_it_happens_again(world: Any) -> None:
    note(world, ("turn_failed", "x"))
    close(world, subjects=("x",))
    note(world, ("turn_failed", "x"))
    assert world.incidents("a") == [("turn_failed", "x")]


def test_they_grow_old_with_what_the_outbox_keeps(world: Any) -> None:
    age_ms = world.policy.retention.age_ms
    note(world, ("turn_failed", "old"), ("dead_letter", "old"), ("blobs_full", "a"))
    world.advance(age_ms)
    note(world, ("turn_failed", "young"))
    world.ask("a", Prune(next(world.reqs), force=False))
    assert len(world.incidents("a")) == 4
    world.advance(1)
    world.ask("a", Prune(next(world.reqs), force=False))
    assert world.incidents("a") == [("blobs_full", "a"), ("turn_failed", "young")]


def test_of_one_kind_only_so_many_stay_open_and_one_tick_closes_a_bounded_number(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pastincidents, "INCIDENTS_OPEN_MAX", 5)
    monkeypatch.setattr(pastincidents, "INCIDENTS_AT_ONCE", 4)
    note(world, ("turn_failed", "x"), *(("quarantined", f"b/{number:02}") for number in range(20)))
    left = []
    while True:
        pruned = world.ask("a", Prune(next(world.reqs), force=False))
        left.append(len(world.incidents("a")) - 1)
        if not pruned.more:
            break
    assert left == [16, 12, 8, 5]
    assert world.incidents("a") == [
        *(("quarantined", f"b/{number}") for number in range(15, 20)),
        ("turn_failed", "x"),
    ]
