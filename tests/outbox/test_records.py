from typing import Any

import msgspec
import pytest

from outbox.delivery import STEPS
from outbox.ids import AgentId
from outbox.records import DeliveryState, LocalAgent, TurnState


def test_every_delivery_state_has_a_part_in_the_table() -> None:
    named = {before for before, _ in STEPS} | set(STEPS.values())
    assert named == set(DeliveryState)


def test_states_are_stored_as_words() -> None:
    assert [*TurnState][:4] == ["held", "queued", "leased", "done"]
    names = ["emitted", "retry_pending", "accepted", "superseded", "processed", "replied", "dead_letter"]
    assert [*DeliveryState] == names


def test_lists_of_an_agent_are_kept_as_one_text() -> None:
    row = LocalAgent(name=AgentId("ann"), owner_epoch=1, token_hash=b"", created_at_ms=1)
    assert (row.fallbacks, row.member_of) == ((), ())
    row = msgspec.structs.replace(row, fallback="lab,mbp", groups="ops")
    assert (row.fallbacks, row.member_of) == (("lab", "mbp"), ("ops",))


def test_rows_are_values(world: Any) -> None:
    row = world.delivery(1)
    assert row == world.delivery(1)
    assert msgspec.structs.replace(row, attempt=2) != row
    with pytest.raises(AttributeError):
        row.attempt = 2
    assert world.received(1).delivery_count == 0
