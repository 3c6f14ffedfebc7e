"""A node announces that it will be away: every node keeps what it said last, until that is over."""

from typing import Any

import pytest

from gateway.engine.effects import Refused, Told
from gateway.engine.inputs import Maintain
from gateway.engine.letters import NEVER_ACCEPTED, NOT_PROCESSED
from gateway.engine.limits import ERROR_CHARS_MAX
from gateway.engine.maintenance import DURING, MAINTENANCE, Announced, announced, is_away
from gateway.engine.stalls import StreamStalled
from gateway.engine.standstill import STALLED
from outbox.envelope import MaintenanceNotice, Signal, encode_payload
from outbox.kinds import Kind
from outbox.records import Incident
from outbox.timestamps import rfc3339


def announce(world: Any, node: str = "a", **notice: Any) -> Any:
    return world.ask(node, Maintain(req=7, notice=MaintenanceNotice(**notice)))


def kept(world: Any, node: str, source: str = "a") -> Incident:
    row = world.store(node).incident(MAINTENANCE, source)
    assert row is not None
    return row


def test_every_node_keeps_it_until_it_is_over(either: Any) -> None:
    until = rfc3339(either.wall_ms + 60_000)
    assert isinstance(announce(either, until=until, reason="new disk"), Told)
    either.meet()
    for node in ("a", "b"):
        row = kept(either, node)
        assert announced(row) == Announced(
            either.wall_ms, either.wall_ms + 60_000, f"until {until}: new disk"
        )
        assert either.incidents(node) == [(MAINTENANCE, "a")]
    announce(either, over=True)
    either.meet()
    assert [either.incidents(node) for node in ("a", "b")] == [[], []]


def test_what_is_said_later_stands_in_place_of_it(world: Any) -> None:
    announce(world)
    announce(world)
    since_ms = kept(world, "a").opened_at_ms
    world.advance(5)
    announce(world)
    assert kept(world, "a").opened_at_ms == since_ms, "the same again is no news"
    announce(world, reason="longer")
    row = kept(world, "a")
    assert (row.opened_at_ms, row.closed_at_ms) == (since_ms + 5, None)
    assert announced(row) == Announced(since_ms + 5, None, "until it says that it is over: longer")


def test_over_without_a_beginning_is_nothing(world: Any) -> None:
    announce(world, over=True)
    assert world.store("a").incident(MAINTENANCE, "a") is None


@pytest.mark.parametrize("wrong", ["soon", "past", "long"])
def test_what_is_no_announcement_is_refused(world: Any, wrong: str) -> None:
    notice = {
        "soon": {"until": "soon"},
        "past": {"until": rfc3339(world.wall_ms)},
        "long": {"reason": "r" * ERROR_CHARS_MAX},
    }[wrong]
    refused = announce(world, **notice)
    assert isinstance(refused, Refused)
    assert refused.code == "invalid_event"
    assert world.said("a") == []


def test_a_node_speaks_for_itself_and_is_kept_short(open_door: Any, stranger: Any) -> None:
    signal = Signal(signal=MAINTENANCE, maintenance=MaintenanceNotice(reason="r" * 9_000))
    event = stranger.event(
        kind=Kind.SIGNAL, source_agent_id=None, to_agent_id=None, payload=encode_payload(signal)
    )
    open_door.tick("b", stranger.says(event, to="*"))
    assert len(kept(open_door, "b", "x").detail) == ERROR_CHARS_MAX
    broken = Signal(signal=MAINTENANCE, maintenance=MaintenanceNotice(until="soon"))
    open_door.tick("b", stranger.says(stranger.event(kind=Kind.SIGNAL, payload=encode_payload(broken))))
    assert "quarantined" in [kind for kind, _ in open_door.incidents("b")]


def detail(world: Any, kind: str, subject: str) -> str:
    row = world.store("a").incident(kind, subject)
    assert row is not None
    return str(row.detail)


@pytest.mark.parametrize("node", ["a", "b"])
def test_what_waits_for_a_node_in_maintenance_says_so_when_it_is_late(world: Any, node: str) -> None:
    announce(world, node)
    world.meet()
    event = world.sent("a", "ann", "bob")
    world.advance(world.policy.sla_accept_ms)
    world.wake("a")
    assert detail(world, NEVER_ACCEPTED, event) == f"bob at b{DURING}{node}"


@pytest.mark.parametrize("before_ms", [0, 1])
def test_what_is_late_after_the_time_that_was_said_says_nothing_of_it(world: Any, before_ms: int) -> None:
    announce(world, "b", until=rfc3339(world.wall_ms + world.policy.sla_accept_ms + before_ms))
    world.meet()
    event = world.sent("a", "ann", "bob")
    world.advance(world.policy.sla_accept_ms)
    world.wake("a")
    assert (DURING in detail(world, NEVER_ACCEPTED, event)) is bool(before_ms)


def test_a_turn_without_an_answer_and_a_stream_that_stands_say_so_too(world: Any) -> None:
    event = world.sent("a", "ann", "bob")
    world.meet()
    announce(world, "b")
    world.meet()
    world.advance(world.policy.sla_process_ms)
    world.wake("a")
    assert detail(world, NOT_PROCESSED, event) == f"bob at b{DURING}b"
    world.tick("a", StreamStalled("x", "b"))
    assert detail(world, STALLED, "x").endswith(f"{DURING}b")


def test_away_until_the_time_that_was_said() -> None:
    assert not is_away(None, 5)
    assert is_away(Announced(1, None, ""), 5)
    assert is_away(Announced(1, 6, ""), 5)
    assert not is_away(Announced(1, 5, ""), 5)
