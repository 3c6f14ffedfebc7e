from hypothesis import given
from hypothesis import strategies as st

from gateway.courier.item import Item, ItemId
from gateway.courier.waiting import WaitingLine
from outbox.ids import AgentId, EventId, NodeId


def key(name: str) -> ItemId:
    return NodeId("a"), EventId(name), AgentId("jen")


@given(st.lists(st.integers(0, 4), max_size=50))
def test_urgent_ones_first_and_equals_as_they_came(priorities: list[int]) -> None:
    line = WaitingLine()
    items = [Item(key(str(place)), priority) for place, priority in enumerate(priorities)]
    for item in items:
        line.join(item)
    taken = [line.take() for _ in items]
    assert taken == sorted(items, key=lambda item: item.priority)
    assert not line


def test_one_that_leaves_is_not_taken() -> None:
    line = WaitingLine()
    line.join(Item(key("a"), 2))
    line.join(Item(key("b"), 2))
    line.leave(Item(key("a"), 2))
    line.leave(Item(key("never"), 2))
    assert line.take() == Item(key("b"), 2)


def test_an_empty_line_has_nobody_to_take() -> None:
    assert WaitingLine().take() is None
