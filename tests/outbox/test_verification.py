from typing import Any

import pytest

from outbox.chain import Head, Page
from outbox.errors import BadCheckpoint, BrokenChain
from outbox.ids import Seq
from outbox.memory import MemoryStore
from outbox.verification import verify_outbox


@pytest.fixture
def filled(world: Any) -> MemoryStore:
    store = MemoryStore(world.identity)
    world.fill(store, 3, batch=2)
    return store


def test_an_honest_outbox_is_verified_batch_by_batch(world: Any, filled: MemoryStore) -> None:
    start, seen = MemoryStore(world.identity).head(), list[tuple[Seq, Seq]]()
    assert (
        verify_outbox(filled, world.verify, start, lambda done, all_of: seen.append((done, all_of)))
        == filled.head()
    )
    assert seen == [(2, 6), (4, 6), (6, 6)]


def test_an_empty_outbox_is_verified(world: Any) -> None:
    store = MemoryStore(world.identity)
    assert verify_outbox(store, world.verify, store.head()) == store.head()


def test_a_strange_key_and_a_wrong_start_are_refused(world: Any, filled: MemoryStore) -> None:
    start = MemoryStore(world.identity).head()
    with pytest.raises(BadCheckpoint):
        verify_outbox(filled, lambda signature, text: text == signature, start)
    with pytest.raises(BrokenChain):
        verify_outbox(filled, world.verify, Head(start.epoch, Seq(2), start.hash))


class Cut:
    """A store whose pages end before its head."""

    def __init__(self, whole: MemoryStore) -> None:
        self.identity, self.head = whole.identity, whole.head

    def read(self, after: Head, entries_max: int, bytes_max: int) -> Page | None:
        return None


def test_a_tail_that_is_missing_is_noticed(world: Any, filled: MemoryStore) -> None:
    with pytest.raises(BrokenChain, match="ends at 0"):
        verify_outbox(Cut(filled), world.verify, MemoryStore(world.identity).head())
