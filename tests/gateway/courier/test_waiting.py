from hypothesis import given
from hypothesis import strategies as st

from gateway.courier.item import Item, ItemId
from gateway.courier.waiting import WaitingLine
from outbox.ids import AgentId, EventId, NodeId


def key(name: str, source: str = "a") -> ItemId:
    return NodeId(source), EventId(name), AgentId("jen")


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
    line.join(b := Item(key("b"), 2))
    line.leave(Item(key("a"), 2))
    line.leave(Item(key("never"), 2))
    assert line.take() is b


def test_an_empty_line_has_nobody_to_take() -> None:
    assert WaitingLine().take() is None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "join", "take", "take", "set aside", "give back", "leave"]),
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.integers(0, 30),
    ),
    max_size=60,
)


@given(STEPS)
def test_what_was_set_aside_stands_where_it_stood(steps: list[tuple[str, str, int, int]]) -> None:
    """As in one list: whoever is set aside keeps its place in it."""
    line, all_, aside = WaitingLine(), list[Item](), list[Item]()
    for number, (step, source, priority, which) in enumerate(steps):
        free = sorted((item for item in all_ if item not in aside), key=lambda item: item.priority)
        match step:
            case "join":
                all_.append(Item(key(str(number), source), priority))
                line.join(all_[-1])
            case "give back":
                line.give_back(NodeId(source))
                aside = [item for item in aside if item.id[0] != source]
            case "leave" if all_:
                gone = all_.pop(which % len(all_))
                aside = [item for item in aside if item is not gone]
                line.leave(gone)
            case "take" | "set aside":
                taken = line.take()
                assert taken is (free[0] if free else None)
                if taken is not None and step == "take":
                    all_.remove(taken)
                elif taken is not None:
                    line.set_aside(taken)
                    aside.append(taken)
        assert bool(line) is (len(all_) > len(aside))
