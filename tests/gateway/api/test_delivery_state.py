"""What an unanswered delivery is said to wait for."""

import pytest
from msgspec.structs import replace

from gateway.api.delivery_state import (
    WAITING_FOR_LINK,
    WAITING_FOR_MAINTENANCE,
    WAITING_FOR_OWNER,
    WAITING_FOR_ROOM,
    shown_state,
)
from outbox.ids import AgentId, EventId, NodeId, Seq
from outbox.records import Delivery, DeliveryState


def row(state: DeliveryState, node: str | None = "lab") -> Delivery:
    return Delivery(
        event_id=EventId("evt_" + "0" * 32),
        kind="message",
        from_agent=AgentId("jen"),
        to_agent=AgentId("bob"),
        node=NodeId(node) if node is not None else None,
        state=state,
        seq=Seq(1),
        thread_id="t",
        emitted_at_ms=0,
        created_at_ms=0,
        expires_at_ms=1,
        next_at_ms=None,
    )


@pytest.mark.parametrize("state", [DeliveryState.EMITTED, DeliveryState.RETRY_PENDING])
@pytest.mark.parametrize(
    ("local", "online", "linked", "shown"),
    [
        (False, False, False, WAITING_FOR_OWNER),
        (False, False, True, WAITING_FOR_OWNER),
        (False, True, False, WAITING_FOR_LINK),
        (False, True, True, None),
        (True, False, False, None),
    ],
)
def test_waiting(state: DeliveryState, local: bool, online: bool, linked: bool, shown: str | None) -> None:
    assert shown_state(row(state), local=local, online=online, linked=linked, away=False) == (shown or state)


@pytest.mark.parametrize(
    "state", sorted(set(DeliveryState) - {DeliveryState.EMITTED, DeliveryState.RETRY_PENDING})
)
def test_an_answered_delivery_waits_for_nothing(state: DeliveryState) -> None:
    assert shown_state(row(state), local=False, online=False, linked=False, away=False) == state


def test_without_a_node_it_waits_for_an_owner() -> None:
    found = shown_state(
        row(DeliveryState.RETRY_PENDING, None), local=False, online=False, linked=False, away=False
    )
    assert found == WAITING_FOR_OWNER


@pytest.mark.parametrize(("linked", "shown"), [(True, WAITING_FOR_ROOM), (False, WAITING_FOR_LINK)])
def test_a_full_inbox_is_waited_for_once_it_can_be_asked(linked: bool, shown: str) -> None:
    full = replace(row(DeliveryState.RETRY_PENDING), error="inbox_full")
    assert shown_state(full, local=False, online=True, linked=linked, away=False) == shown
    asked = replace(full, state=DeliveryState.EMITTED)
    assert shown_state(asked, local=False, online=True, linked=True, away=False) == DeliveryState.EMITTED


@pytest.mark.parametrize(
    ("local", "online", "linked", "shown"),
    [
        (False, False, False, WAITING_FOR_MAINTENANCE),
        (False, False, True, WAITING_FOR_MAINTENANCE),
        (False, True, False, WAITING_FOR_MAINTENANCE),
        (False, True, True, DeliveryState.EMITTED),
        (True, False, False, DeliveryState.EMITTED),
    ],
)
def test_who_said_that_it_would_be_away_is_waited_for_as_such(
    local: bool, online: bool, linked: bool, shown: str
) -> None:
    asked = row(DeliveryState.EMITTED)
    assert shown_state(asked, local=local, online=online, linked=linked, away=True) == shown
    done = row(DeliveryState.PROCESSED)
    assert shown_state(done, local=False, online=False, linked=False, away=True) == DeliveryState.PROCESSED
