"""Epochs of the own outbox: what both stores promise about them."""

from typing import Any

import pytest

from outbox.chain import Head, follow, genesis
from outbox.errors import BrokenChain, CursorPastEnd, ForeignEpoch, StorageFailed
from outbox.ids import Epoch, NodeId, Seq
from outbox.journal import Journal
from outbox.memory import MemoryStore
from outbox.records import EpochRow
from outbox.store import Store
from outbox.verification import verify_outbox

FIRST, SECOND, THIRD = (Epoch(f"00000{n}-0123456789ab") for n in (1, 2, 3))
MBP, LAB = NodeId("mbp"), NodeId("lab")


def begin(store: Store, epoch: Epoch) -> None:
    store.begin()
    store.begin_epoch(epoch)
    store.commit()


def add(store: Store, world: Any, *events: int) -> None:
    """One batch in the current epoch."""
    store.begin()
    first = store.head().seq + 1
    entries = [world.entry(first + at, event) for at, event in enumerate(events)]
    world.append(store, *entries)
    store.commit()


def walk(store: Store, start: Head) -> list[tuple[str, int]]:
    """All places after a cursor, followed as a reader would, from epoch to epoch."""
    head, places = start, []
    while (page := store.read(head, 1, 1)) is not None:
        if page.epoch != head.epoch:
            head = genesis(store.identity().mesh, store.identity().node, page.epoch)
        head = follow(head, page)
        places += [(page.epoch[:6], entry.seq) for entry in page.entries]
    return places


def place(epoch: Epoch, seq: int) -> Head:
    return Head(epoch, Seq(seq), bytes(32))


def test_a_new_epoch_begins_at_its_genesis(store: Store, world: Any) -> None:
    world.fill(store, 2)
    begin(store, SECOND)
    assert store.identity().epoch == SECOND
    assert store.head() == genesis(world.identity.mesh, world.identity.node, SECOND)
    assert store.ended_epochs() == [EpochRow(1, FIRST, Seq(2))]
    world.fill(store, 1)
    assert store.head().seq == 1


@pytest.mark.parametrize("epoch", [FIRST, Epoch("000001-ffffffffffff"), Epoch("000000-0123456789ab")])
def test_epochs_only_rise(store: Store, world: Any, epoch: Epoch) -> None:
    store.begin()
    with pytest.raises(StorageFailed, match="does not come after"):
        store.begin_epoch(epoch)
    store.rollback()
    assert store.identity() == world.identity


def test_a_reader_goes_on_from_epoch_to_epoch(store: Store, world: Any) -> None:
    start = store.head()
    add(store, world, 1, 2)
    begin(store, SECOND)
    begin(store, THIRD)
    add(store, world, 3)
    assert walk(store, start) == [("000001", 1), ("000001", 2), ("000003", 1)]
    assert walk(store, place(FIRST, 2)) == [("000003", 1)]
    assert walk(store, place(SECOND, 0)) == [("000003", 1)]
    assert walk(store, store.head()) == []


def test_a_reader_that_knows_more_of_an_ended_epoch_goes_on_too(store: Store, world: Any) -> None:
    add(store, world, 1)
    begin(store, SECOND)
    assert store.read(place(FIRST, 9), 10, 1000) is None
    add(store, world, 2)
    assert walk(store, place(FIRST, 9)) == [("000002", 1)]
    with pytest.raises(CursorPastEnd):
        store.read(place(SECOND, 2), 10, 1000)
    for foreign in (Epoch("000002-ffffffffffff"), THIRD):
        with pytest.raises(ForeignEpoch):
            store.read(place(foreign, 1), 10, 1000)


@pytest.mark.parametrize(
    ("epoch", "read"),
    [
        ("000001-ffffffffffff", [("000002", 1), ("000003", 1)]),
        ("000000-ffffffffffff", [("000001", 1), ("000002", 1), ("000003", 1)]),
        ("000002-ffffffffffff", [("000003", 1)]),
    ],
)
def test_an_earlier_epoch_that_is_unknown_here_is_read_on_from(
    store: Store, world: Any, epoch: str, read: list[tuple[str, int]]
) -> None:
    """Its writer has lost it altogether: the outbox was gone."""
    for number, later in enumerate((SECOND, THIRD, None), 1):
        add(store, world, number)
        if later is not None:
            begin(store, later)
    assert walk(store, place(Epoch(epoch), 9)) == read


def test_what_was_held_back_is_never_read_once_its_epoch_has_ended(store: Store, world: Any) -> None:
    start = store.head()
    add(store, world, 1)
    store.begin()
    store.hold()
    store.commit()
    add(store, world, 2)
    add(store, world, 3)
    assert (store.shown().seq, store.head().seq) == (1, 3)
    assert store.shown() == store.head_at(FIRST, Seq(1))
    begin(store, SECOND)
    add(store, world, 4)
    assert walk(store, start) == [("000001", 1), ("000002", 1)]
    assert (store.shown(), store.ended_epochs()) == (store.head(), [EpochRow(1, FIRST, Seq(1))])


def test_what_is_released_is_shown(store: Store, world: Any) -> None:
    add(store, world, 1)
    store.begin()
    store.hold()
    store.commit()
    add(store, world, 2)
    store.begin()
    store.hold()
    store.release()
    store.commit()
    assert store.shown() == store.head()
    store.begin()
    store.release()
    store.commit()
    assert store.ended_epochs() == []


def test_a_rollback_takes_a_new_epoch_back(store: Store, world: Any) -> None:
    add(store, world, 1)
    before = store.head()
    store.begin()
    store.hold()
    store.doubt(MBP, SECOND)
    store.begin_epoch(SECOND)
    entry = world.entry(1, 2)
    world.append(store, entry)
    assert store.identity().epoch == SECOND
    store.rollback()
    assert (store.identity(), store.head(), store.shown()) == (world.identity, before, before)
    assert (store.ended_epochs(), store.doubts()) == ([], {})
    add(store, world, 2)
    assert store.head().seq == 2


def test_the_chain_is_known_at_every_place_of_every_epoch(store: Store, world: Any) -> None:
    start = store.head()
    add(store, world, 1, 2, 3)
    end = store.head()
    begin(store, SECOND)
    add(store, world, 4)
    assert store.head_at(FIRST, Seq(0)) == start
    assert store.head_at(FIRST, Seq(3)) == end
    middle = store.head_at(FIRST, Seq(2))
    assert middle is not None
    page = store.read(middle, 10, 1000)
    assert page is not None
    assert follow(middle, page) == end
    assert store.head_at(SECOND, Seq(1)) == store.head()
    assert (
        store.head_at(FIRST, Seq(4)) is store.head_at(FIRST, Seq(-1)) is store.head_at(THIRD, Seq(0)) is None
    )


def test_the_checkpoint_that_covers_a_place(store: Store, world: Any) -> None:
    add(store, world, 1, 2)
    add(store, world, 3)
    begin(store, SECOND)
    found = [store.checkpoint_from(FIRST, Seq(seq)) for seq in (1, 2, 3)]
    assert [checkpoint and checkpoint.seq for checkpoint in found] == [2, 2, 3]
    assert found[0] is not None
    assert found[0].head == store.head_at(FIRST, Seq(2))
    assert store.checkpoint_from(FIRST, Seq(4)) is store.checkpoint_from(SECOND, Seq(0)) is None
    assert store.checkpoint_from(THIRD, Seq(0)) is None


def test_an_epoch_that_was_let_go_up_to_its_end_is_known_by_its_floor(store: Store, world: Any) -> None:
    add(store, world, 1, 2)
    end = store.head()
    begin(store, SECOND)
    add(store, world, 3)
    store.begin()
    floor = store.move_floor(FIRST, Seq(2))
    store.commit()
    assert floor.head == end == store.head_at(FIRST, Seq(2))
    assert [store.checkpoint_from(FIRST, Seq(seq)) for seq in (0, 1, 2, 3)] == [floor, floor, floor, None]
    assert store.head_at(FIRST, Seq(1)) is store.head_at(FIRST, Seq(3)) is None
    store.begin()
    store.move_floor(SECOND, Seq(1))
    store.commit()
    assert store.checkpoint_from(FIRST, Seq(0)) is store.head_at(FIRST, Seq(2)) is None


def test_where_an_event_stands_first(store: Store, world: Any) -> None:
    add(store, world, 1, 2)
    begin(store, SECOND)
    store.begin()
    again = world.entry(1, 2, attempt=2)
    other = world.entry(2, 3, corr=2)
    world.append(store, again, other)
    store.commit()
    assert store.first_position(world.event(2)) == (FIRST, 2)
    assert store.first_position(world.event(3)) == (SECOND, 2)
    assert store.first_position(world.event(9)) is None
    assert store.events_about(world.event(2)) == [world.entry(2, 2), again, other]


def test_an_attempt_may_stand_once_in_each_epoch(store: Store, world: Any) -> None:
    add(store, world, 1)
    begin(store, SECOND)
    add(store, world, 1)
    with pytest.raises(StorageFailed):
        add(store, world, 1)
    store.rollback()


def test_doubts_are_kept_until_they_are_gone(store: Store) -> None:
    store.begin()
    store.doubt(MBP, SECOND)
    store.doubt(LAB, SECOND)
    store.doubt(MBP, THIRD)
    store.trust(NodeId("nobody"))
    store.commit()
    assert store.doubts() == {LAB: SECOND, MBP: THIRD}
    assert list(store.doubts()) == [LAB, MBP]
    store.begin()
    store.trust(LAB)
    store.commit()
    assert store.doubts() == {MBP: THIRD}


def test_a_cursor_keeps_the_signature_that_vouches_for_it(store: Store, world: Any) -> None:
    head = Head(FIRST, Seq(4), b"h" * 32)
    store.begin()
    store.put_cursor(MBP, head)
    assert store.signed_cursor(MBP) is None
    store.put_cursor(MBP, head, b"s" * 64)
    store.commit()
    kept = store.signed_cursor(MBP)
    assert kept is not None
    assert (kept.head, kept.signature, kept.node, kept.mesh) == (head, b"s" * 64, MBP, world.identity.mesh)
    assert store.signed_cursor(LAB) is None


def test_every_epoch_is_verified(store: Store, world: Any) -> None:
    start = store.head()
    add(store, world, 1, 2)
    begin(store, SECOND)
    assert verify_outbox(store, world.verify, start) == store.head()
    add(store, world, 3)
    assert verify_outbox(store, world.verify, store.genesis()) == store.head()
    with pytest.raises(BrokenChain):
        verify_outbox(store, world.verify, place(FIRST, 1))


def test_the_journal_comes_back_in_its_epoch(open_journal: Any, world: Any) -> None:
    journal: Journal = open_journal()
    add(journal, world, 1, 2)
    begin(journal, SECOND)
    reader_head = journal.head()
    journal.close()
    again: Journal = open_journal()
    assert (again.head(), again.identity().epoch) == (reader_head, SECOND)
    assert again.verify_tail(world.verify) == reader_head
    add(again, world, 3)
    assert again.verify(world.verify) == again.head()


def test_the_twin_agrees_on_the_oldest_genesis(world: Any) -> None:
    twin = MemoryStore(world.identity)
    start = twin.head()
    begin(twin, SECOND)
    assert twin.genesis() == start
