"""Nothing of a halted source is dealt, and halting one looks at none of its items."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.courier.courier import Courier
from gateway.courier.halts import Halt, Halts
from gateway.courier.item import Item, ItemId
from gateway.courier.limits import CourierLimits
from outbox.ids import AgentId, EventId, NodeId
from tests.gateway.lines import lines_run

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
INBOX = "agents/jen/inbox"
SOURCES = st.sampled_from([A, B, C])
STEPS = st.one_of(
    st.tuples(st.just("offer"), SOURCES, st.integers(1, 3)),
    st.tuples(st.just("halt"), SOURCES, st.sampled_from([None, Halt.NEW, Halt.ALL])),
    st.tuples(st.just("nack"), st.just(A), st.integers(0, 9)),
    st.tuples(st.just("grant"), st.just(A), st.integers(1, 4)),
    st.tuples(st.just("pump"), st.just(A), st.integers(1, 3)),
)


def desk(items: int, credit: int = 0) -> Courier:
    courier = Courier(CourierLimits())
    courier.subscribe("sub", courier_stream(courier), "run")
    if credit:
        courier.grant("sub", credit)
    for number in range(items):
        courier.offer(INBOX, Item((A, EventId(str(number)), AgentId("jen")), 2), 0)
    return courier


def courier_stream(courier: Courier) -> str:
    courier.open(INBOX)
    return INBOX


@pytest.mark.parametrize("how", list(Halt))
def test_only_what_nobody_had_is_new(how: Halt) -> None:
    halts = Halts()
    assert not halts
    assert not halts.set(A, how)
    assert halts
    fresh, back = Item((A, EventId("1"), AgentId("jen")), 2), Item((A, EventId("2"), AgentId("jen")), 2)
    back.deliveries = 1
    assert (halts.stop(fresh), halts.stop(back)) == (True, how is Halt.ALL)
    assert not halts.stop(Item((B, EventId("1"), AgentId("jen")), 2))
    assert halts.set(A, None)
    assert not halts.set(A, None)
    assert not halts.stop(fresh)


def test_it_is_told_when_more_may_be_dealt() -> None:
    halts = Halts()
    assert [halts.set(A, how) for how in (Halt.ALL, Halt.ALL, Halt.NEW, Halt.ALL, None)] == [
        False,
        False,
        True,
        False,
        True,
    ]


def test_to_halt_a_source_and_to_let_it_go_on_looks_at_no_item() -> None:
    work = []
    for items in (10, 1_000):
        courier = desk(items)
        for how in (Halt.NEW, Halt.ALL, None, Halt.ALL, None):
            lines = lines_run(lambda: courier.halt(A, how, 0))  # noqa: B023 - called at once
            work.append(lines)
    assert work[:5] == work[5:]


@pytest.mark.parametrize("most", [1, 7, 100])
def test_no_pump_passes_over_more_than_it_may(most: int) -> None:
    courier = desk(100, credit=5)
    other = Item((B, EventId("other"), AgentId("jen")), 2)
    courier.offer(INBOX, other, 0)
    courier.halt(A, Halt.NEW, 0)
    dealt, pumps, work = list[ItemId](), 0, list[int]()
    while courier.can_deal:
        work.append(
            lines_run(lambda: dealt.extend(each.item_id for each in courier.pump(0, str, most).hand_overs))
        )
        pumps += 1
    assert dealt == [other.id]
    assert pumps == -(-101 // most)
    assert max(work) <= 40 + 25 * most
    courier.halt(A, None, 0)
    assert [each.item_id[1] for each in courier.pump(0, str).hand_overs] == ["0", "1", "2", "3"]


@given(st.lists(STEPS, max_size=60))
def test_it_is_as_if_all_stood_in_one_list(steps: list[tuple[str, NodeId, Any]]) -> None:
    """The list holds what waits, by priority, as it came; the first of it that is not halted is dealt."""
    courier = desk(0)
    waiting, halts = list[Item](), dict[NodeId, Halt | None]()
    hands, credit = list[Item](), 0

    def free() -> list[Item]:
        found = [
            item
            for item in waiting
            if halts.get(item.id[0]) is None or (halts[item.id[0]] is Halt.NEW and item.deliveries)
        ]
        return sorted(found, key=lambda item: item.priority)

    for number, (step, source, amount) in enumerate(steps):
        match step:
            case "offer":
                item = Item((source, EventId(str(number)), AgentId("jen")), amount)
                courier.offer(INBOX, item, 0)
                waiting.append(item)
            case "halt":
                courier.halt(source, amount, 0)
                halts[source] = amount
            case "nack" if hands:
                item = hands.pop(amount % len(hands))
                if item.deliveries < CourierLimits().max_deliveries:
                    courier.nack(INBOX, item.id, None, None, 0, 0)
                    waiting.append(item)
            case "grant":
                courier.grant("sub", amount)
                credit += amount
            case "pump":
                first = free()
                given = courier.pump(0, lambda: "l", amount).hand_overs
                assert [each.item_id for each in given] == [item.id for item in first[: len(given)]]
                hands += first[: len(given)]
                waiting = [item for item in waiting if item not in first[: len(given)]]
                credit -= len(given)
        if not courier.can_deal:
            assert not (credit and free()), "who waits beside credit is dealt"
