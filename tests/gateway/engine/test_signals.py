"""Incidents of a report: told once by an agent, heard by every node."""

from typing import Any

import pytest
from msgspec.structs import replace

from gateway.engine.effects import Refused, Told
from gateway.engine.inputs import TellIncident
from outbox.envelope import IncidentNotice, Signal, decode_event, decode_header, encode_payload
from outbox.kinds import Kind

OPENED = "2026-11-27T12:00:00.000Z"
NOTICE = IncidentNotice(id="dead_letter:evt_1", name="dead_letter", severity="critical", opened_at=OPENED)
OVER = replace(NOTICE, closed_at="2026-11-27T13:00:00.000Z")


def tell(world: Any, node: str, notice: IncidentNotice = NOTICE, agent: str = "ann", **more: Any) -> Any:
    (answer,) = (
        effect
        for effect in world.tick(node, TellIncident(req=7, agent=agent, notice=notice, **more))
        if isinstance(effect, Told | Refused)
    )
    return answer


def reported(world: Any, node: str) -> Any:
    return world.store(node).incident("reported", "a/dead_letter:evt_1")


def test_every_node_hears_of_it_the_telling_one_too(either: Any) -> None:
    world = either
    told = tell(world, "a", detail="expired")
    assert isinstance(told, Told)
    assert not told.duplicate
    world.pull("b", "a")
    for node in ("a", "b"):
        row = reported(world, node)
        assert (row.detail, row.closed_at_ms) == ("critical dead_letter: expired", None)


def test_it_is_told_once_also_after_a_restart_and_once_more_when_it_is_over(either: Any) -> None:
    world = either
    first = tell(world, "a")
    head = world.store("a").head()
    assert tell(world, "a", replace(NOTICE, severity="major")) == replace(first, duplicate=True)
    world.restart("a")
    assert tell(world, "a") == replace(first, duplicate=True)
    assert world.store("a").head() == head

    over = tell(world, "a", OVER)
    assert not over.duplicate
    assert tell(world, "a", OVER) == replace(over, duplicate=True)
    assert world.store("a").head().seq == head.seq + 1
    world.pull("b", "a")
    for node in ("a", "b"):
        assert reported(world, node).closed_at_ms is not None


def test_the_end_of_what_nobody_heard_of_opens_nothing(world: Any) -> None:
    tell(world, "a", OVER)
    world.pull("b", "a")
    assert reported(world, "a") is None
    assert reported(world, "b") is None


def test_stands_in_the_outbox_for_everybody_and_obliges_nobody(world: Any) -> None:
    event = tell(world, "a", ref="evt_" + "0" * 32).event_id
    (entry,) = (
        entry for entry in world.page("b", "a").entries if decode_header(entry.header).event_id == event
    )
    assert decode_header(entry.header).to == "*"
    found = decode_event(entry.body)
    assert (found.kind, found.source_agent_id, found.to_agent_id) == (Kind.SIGNAL, "ann", None)
    assert world.store("a").delivery(event, "b") is None
    world.pull("b", "a")
    assert world.acks("b", event) == []


@pytest.mark.parametrize(
    ("notice", "more"),
    [
        (replace(NOTICE, id=""), {}),
        (replace(NOTICE, id="x" * 115), {}),
        (replace(NOTICE, name="x" * 501), {}),
        (replace(NOTICE, severity="x" * 501), {}),
        (replace(NOTICE, opened_at="yesterday"), {}),
        (replace(NOTICE, closed_at="2026"), {}),
        (NOTICE, {"detail": "x" * 501}),
        (NOTICE, {"agent": "nobody"}),
    ],
)
def test_what_is_out_of_bounds_is_refused_and_nothing_is_appended(
    world: Any, notice: IncidentNotice, more: Any
) -> None:
    before = world.store("a").head()
    assert isinstance(tell(world, "a", notice, **more), Refused)
    assert world.store("a").head() == before


def test_an_id_of_another_class_is_a_conflict(world: Any) -> None:
    tell(world, "a")
    refused = tell(world, "a", replace(NOTICE, name="fork"))
    assert (refused.code, refused.retryable) == ("idempotency_conflict", False)


def test_a_signal_in_the_name_of_somebody_elses_agent_is_kept_and_reported(world: Any, stranger: Any) -> None:
    payload = encode_payload(Signal(signal="incident", incident=NOTICE))
    foreign = stranger.event(kind=Kind.SIGNAL, source_agent_id="bob", to_agent_id=None, payload=payload)
    world.tick("b", stranger.says(foreign, to="*"))
    assert world.store("b").incident("reported", "x/dead_letter:evt_1") is None
