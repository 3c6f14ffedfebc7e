from typing import Any

import msgspec
import pytest

from outbox.delivery import STEPS
from outbox.records import DeliveryState, TurnState


def test_every_delivery_state_has_a_part_in_the_table() -> None:
    named = {before for before, _ in STEPS} | set(STEPS.values())
    assert named == set(DeliveryState)


def test_states_are_stored_as_words() -> None:
    assert [*TurnState][:4] == ["held", "queued", "leased", "done"]
    assert [*DeliveryState] == ["emitted", "retry_pending", "accepted", "processed", "replied", "dead_letter"]


def test_rows_are_values(world: Any) -> None:
    row = world.delivery(1)
    assert row == world.delivery(1)
    assert msgspec.structs.replace(row, attempt=2) != row
    with pytest.raises(AttributeError):
        row.attempt = 2
    assert world.received(1).delivery_count == 0
