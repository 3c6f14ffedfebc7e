"""What is too much for one tick is done in parts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.engine.errands import Errands, Task
from outbox.ids import MeshId, NodeId, make_epoch
from outbox.memory import MemoryStore
from outbox.records import Errand, Identity

ONE, OTHER = Errand(Task.ASKING, "one"), Errand(Task.ASKING, "other")


class Counted:
    """Looks at so many rows, and keeps how many are left."""

    def __init__(self, row: Errand, rows: int) -> None:
        self.row = row
        self.rows = rows

    def some(self, _tick: Any, most: int) -> int:
        looked_at = min(self.rows, most)
        self.rows -= looked_at
        self.row = replace(self.row, detail=str(self.rows))
        return looked_at


class Part:
    """As much of a tick as errands see."""

    def __init__(self, store: MemoryStore, rows: int) -> None:
        self.store = store
        self.rows_left = rows


def done(errands: Any, part: Part) -> None:
    while errands.go_on(part):
        pass


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(Identity(MeshId("mesh"), NodeId("a"), make_epoch(1, bytes(6))))
    store.begin()
    return store


def test_one_after_the_other_shares_what_a_tick_may_look_at(store: MemoryStore) -> None:
    errands = Errands([Counted(ONE, 3)])
    errands.begin(Part(store, 0), Counted(OTHER, 4))
    left = []
    while errands:
        done(errands, Part(store, 2))
        left.append([(row.subject, row.detail) for row in store.errands()])
    assert left == [[("one", "1"), ("other", "")], [("other", "3")], [("other", "1")], []]


def test_one_that_begins_again_takes_the_place_of_the_one_before(store: MemoryStore) -> None:
    errands = Errands([Counted(ONE, 9)])
    errands.begin(Part(store, 0), Counted(replace(ONE, detail="again"), 1))
    assert errands.get(Task.ASKING, "one") == replace(ONE, detail="again")
    assert errands.any(Task.ASKING)
    done(errands, Part(store, 2))
    assert not errands
    assert (errands.get(Task.ASKING, "one"), errands.any(Task.ASKING)) == (None, False)


def test_one_that_begins_again_is_done_behind_all_that_had_begun(store: MemoryStore) -> None:
    """Seed 140 with failed syncs: the last part of an answer was given before what the question named."""
    errands = Errands([Counted(ONE, 9)])
    errands.begin(Part(store, 0), Counted(OTHER, 2))
    errands.begin(Part(store, 0), Counted(replace(ONE, detail="again"), 1))
    done(errands, Part(store, 3))
    assert [row.subject for row in store.errands()] == ["one"]


@given(rows=st.lists(st.integers(0, 9), max_size=5), most=st.integers(1, 4))
def test_all_is_done_and_no_tick_does_more_than_its_share(rows: list[int], most: int) -> None:
    store = MemoryStore(Identity(MeshId("mesh"), NodeId("a"), make_epoch(1, bytes(6))))
    store.begin()
    works = [Counted(Errand(Task.ASKING, str(at)), count) for at, count in enumerate(rows)]
    errands, ticks = Errands(works), 0
    while errands:
        before = sum(work.rows for work in works)
        done(errands, Part(store, most))
        assert before - sum(work.rows for work in works) <= most
        ticks += 1
    assert sum(work.rows for work in works) == 0
    assert ticks <= sum(rows) // most + len(rows) + 1
