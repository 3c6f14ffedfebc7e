import pytest

from gateway.courier.item import Item, ItemId, Lease
from outbox.errors import InvalidEvent
from outbox.ids import AgentId, EventId, NodeId

KEY: ItemId = (NodeId("a"), EventId("e"), AgentId("jen"))


@pytest.mark.parametrize("priority", [-1, 5])
def test_a_priority_out_of_range_is_refused(priority: int) -> None:
    with pytest.raises(InvalidEvent):
        Item(KEY, priority)


def test_a_new_item_is_ready_and_was_never_handed_over() -> None:
    assert Item(KEY, 4) == Item(KEY, 4, ready_at_ms=0, deliveries=0)


@pytest.mark.parametrize(
    ("lease_id", "session", "answers"),
    [
        ("l1", "phone", True),
        ("l1", None, True),
        (None, "phone", True),
        (None, None, True),
        ("l2", "phone", False),
        ("l1", "laptop", False),
        (None, "", False),
        ("", None, False),
    ],
)
def test_what_is_given_must_match(lease_id: str | None, session: str | None, answers: bool) -> None:
    assert Lease("l1", "phone").answers_to(lease_id, session) is answers
