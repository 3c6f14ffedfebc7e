"""Fairness between peers, and between them and who asks here, counted in entries: no clock matters."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.brought import Brought, bringer, cost
from gateway.engine.inputs import (
    FloorRead,
    Grant,
    Input,
    LinkDown,
    LinkUp,
    PageRead,
    RelayCaught,
    StreamKnown,
)
from gateway.limits import BROUGHT_BYTES_OF_ONE, BROUGHT_PAGE_COST, BROUGHT_TICK_MAX, LINE_INPUTS_MAX
from outbox.ids import NodeId
from outbox.limits import BATCH_BYTES_MAX, BATCH_ENTRIES_MAX
from tests.gateway.outboxes import messages

EVE, ANN, BOB = NodeId("eve"), NodeId("ann"), NodeId("bob")
LARGEST = BROUGHT_PAGE_COST + BATCH_ENTRIES_MAX + BATCH_BYTES_MAX // BROUGHT_BYTES_OF_ONE


def page(peer: NodeId, entries: int = 1, size: int = 0, number: int = 0) -> PageRead:
    return PageRead(peer, messages(entries, entries).pages[0], None, number, size)  # type: ignore[arg-type]


PAGES = {entries: page(EVE, entries) for entries in (1, 10, 100, BATCH_ENTRIES_MAX)}


def test_what_comes_over_a_link_stands_in_the_line_of_its_peer() -> None:
    brought = PageRead(ANN, PAGES[1].page, EVE)
    floor = FloorRead(EVE, PAGES[1].page.checkpoint)
    for item in (PAGES[1], brought, floor, LinkUp(EVE, ()), LinkDown(EVE), StreamKnown(EVE, None)):
        assert bringer(item) == EVE
    assert bringer(RelayCaught(EVE, ANN, "x", "x")) == EVE
    assert bringer(Grant(1, "one", 1)) is None


def test_bytes_weigh_as_much_as_entries() -> None:
    assert cost(PAGES[10]) == BROUGHT_PAGE_COST + 10
    assert cost(page(EVE, 1, 100 * BROUGHT_BYTES_OF_ONE)) == BROUGHT_PAGE_COST + 101
    assert cost(LinkDown(EVE)) == 1


def test_who_floods_makes_only_itself_wait() -> None:
    """Whatever one peer has waiting: the first page of another one is in the next tick."""
    brought = Brought()
    for _ in range(5_000):
        brought.put(EVE, PAGES[1])
    brought.take(asked=True)
    brought.put(ANN, page(ANN))
    brought.put(BOB, page(BOB))
    assert {bringer(item) for item in brought.take(asked=True)} == {EVE, ANN, BOB}


def test_peers_that_flood_alike_get_the_same() -> None:
    brought = Brought()
    for peer in (EVE, ANN, BOB):
        for number in range(2 * BROUGHT_TICK_MAX):
            brought.put(peer, page(peer, number=number))
    taken = Counter(bringer(item) for _ in range(3) for item in brought.take(asked=True))
    assert max(taken.values()) - min(taken.values()) <= 1


@given(st.lists(st.tuples(st.sampled_from([EVE, ANN, BOB]), st.sampled_from(sorted(PAGES))), min_size=1))
def test_ticks_with_requests_take_their_share_and_at_most_one_page_more(
    waiting: list[tuple[NodeId, int]],
) -> None:
    """Over any number of ticks; and all of it comes, so nobody is starved by requests either."""
    brought, costs = Brought(), []
    for peer, entries in waiting:
        brought.put(peer, PageRead(peer, PAGES[entries].page))
    while len(brought):
        costs.append(sum(map(cost, brought.take(asked=True))))
        for first in range(len(costs)):
            some = costs[first:]
            assert sum(some) < len(some) * BROUGHT_TICK_MAX + LARGEST
    assert sum(costs) == sum(cost(PAGES[entries]) for _, entries in waiting)


def test_without_requests_nobody_waits_for_a_large_page_to_be_paid() -> None:
    brought = Brought()
    for _ in range(3):
        brought.put(EVE, PAGES[BATCH_ENTRIES_MAX])
    assert [len(brought.take(asked=False)) for _ in range(4)] == [1, 1, 1, 0]


def test_a_line_is_full_by_itself() -> None:
    brought = Brought()
    for _ in range(LINE_INPUTS_MAX):
        assert not brought.is_full(EVE)
        brought.put(EVE, PAGES[1])
    assert brought.is_full(EVE)
    assert not brought.is_full(ANN)


def test_what_is_taken_out_leaves_the_rest_in_order() -> None:
    brought = Brought()
    items: list[Input] = [page(peer, number=number) for number in range(6) for peer in (EVE, ANN)]
    for item in items:
        brought.put(bringer(item) or EVE, item)
    out = brought.withdraw(lambda item: isinstance(item, PageRead) and item.link % 2 == 0)
    assert {item.link for item in out if isinstance(item, PageRead)} == {0, 2, 4}
    assert len(brought) == 6
    rest = brought.take(asked=False)
    assert [item.link for item in rest if isinstance(item, PageRead) and item.node == EVE] == [1, 3, 5]
    assert len(brought) == 0
