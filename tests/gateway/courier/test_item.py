import pytest

from gateway.courier.item import Item
from outbox.errors import InvalidEvent


@pytest.mark.parametrize("priority", [-1, 5])
def test_a_priority_out_of_range_is_refused(priority: int) -> None:
    with pytest.raises(InvalidEvent):
        Item("a", priority)


def test_a_new_item_is_ready_and_was_never_handed_over() -> None:
    assert Item("a", 4) == Item("a", 4, ready_at_ms=0, deliveries=0)
