"""Keys in order, sorted in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.engine.inorder import InOrder
from gateway.engine.limits import SORTED_PAST
from gateway.engine.turnkey import TurnKey, turn_text
from outbox.ids import AgentId, EventId, NodeId

KEYS = st.tuples(
    st.sampled_from("ab").map(NodeId),
    st.integers(0, 300).map(lambda at: EventId(f"evt_{at:03}")),
    st.just("jen"),
)


def key(at: int) -> TurnKey:
    return NodeId("a"), EventId(f"evt_{at:06}"), AgentId("jen")


@given(
    keys=st.lists(KEYS, unique=True, max_size=200),
    source=st.sampled_from([None, NodeId("a"), NodeId("c")]),
    behind=st.one_of(st.just(""), KEYS.map(turn_text)),
    rows=st.integers(1, 4),
    most=st.integers(1, 9),
    at_once=st.booleans(),
)
def test_it_is_as_if_all_were_sorted_at_once(  # noqa: PLR0917 - Hypothesis names them
    keys: list[TurnKey], source: NodeId | None, behind: str, rows: int, most: int, at_once: bool
) -> None:
    turns = InOrder(keys, source, behind)
    if at_once:
        turns.sort_all()
    while not turns.sort(rows):
        assert not at_once
    taken: list[str] = []
    while part := turns.take(most):
        assert turns.sort(rows)
        taken += part
        assert len(part) == most or not turns.take(most)
    texts = [turn_text(key) for key in keys if source in {None, key[0]}]
    assert taken == sorted(text for text in texts if text > behind)


@pytest.mark.parametrize("turns", [0, 1, SORTED_PAST, SORTED_PAST + 1, 10 * SORTED_PAST])
def test_each_part_is_as_large_as_it_may_be(turns: int) -> None:
    order, parts = InOrder([key(at) for at in reversed(range(turns))], None, ""), 1
    while not order.sort(1):
        parts += 1
    assert parts == max(1, -(-turns // SORTED_PAST))
