"""A stream stands still: told once, and over when it moves or when nobody reads it any more."""

from typing import Any

import pytest

from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.engine.standstill import STALLED
from outbox.ids import NodeId

B = NodeId("b")


@pytest.fixture
def duo(make_world: Any) -> Any:
    return make_world("a", "b")


def put_out_b(world: Any) -> None:
    """By who has read all of it."""
    world.revoke("b", world.store("a").signed_cursor(B), reason="lost")
    world.see("a")


def is_open(world: Any) -> bool:
    incident = world.store("a").incident(STALLED, "b")
    return incident is not None and incident.closed_at_ms is None


def test_a_standstill_is_open_until_the_stream_moves(duo: Any) -> None:
    duo.tick("a", StreamStalled(B, NodeId("c")))
    assert is_open(duo)
    duo.restart("a")
    assert is_open(duo)
    duo.tick("a", StreamFlows(B))
    assert not is_open(duo)


def test_a_standstill_is_over_when_nothing_more_is_read(duo: Any) -> None:
    """Its links know nothing of what the process before had told: the incident stayed open for ever."""
    duo.tick("a", StreamStalled(B, NodeId("c")))
    duo.restart("a")
    assert duo.store("a").incident(STALLED, "b").closed_at_ms is None
    put_out_b(duo)
    duo.tick("a")
    assert duo.store("a").incident(STALLED, "b").closed_at_ms is not None


def test_nobody_waits_for_more_of_a_node_that_was_put_out_and_read(duo: Any) -> None:
    """A peer may have read further than the revocation leaves, and have more for ever."""
    put_out_b(duo)
    duo.tick("a")
    duo.tick("a", StreamStalled(B, NodeId("c")))
    assert duo.store("a").incident(STALLED, "b") is None
