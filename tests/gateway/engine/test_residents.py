"""Who lives here, and under which owner epoch they speak."""

from typing import Any

import pytest

from gateway.engine.inputs import AddAgent
from gateway.engine.residents import Residents
from outbox.errors import NotFound
from outbox.records import LocalAgent

ANN = LocalAgent(name="ann", owner_epoch=1, token_hash=b"", created_at_ms=0)


def test_residents_are_known_by_name() -> None:
    residents = Residents([ANN])
    assert residents.get("ann") is ANN
    assert ("ann" in residents, "bob" in residents) == (True, False)
    assert residents.names() == ["ann"]
    with pytest.raises(NotFound):
        residents.get("bob")


def test_an_agent_speaks_under_its_own_epoch_even_before_the_room_knows_it(make_world: Any) -> None:
    world = make_world("a", "b")
    world.live("b", "bob")
    world.ask("a", AddAgent(50, "ann", b""))
    world.sent("a", "ann", "bob")
    (event,) = world.said("a")
    assert event.trace.source_owner_epoch == 1
