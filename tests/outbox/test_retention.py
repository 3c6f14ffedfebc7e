"""What may be forgotten, and what never is: both stores."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox.chain import Head, follow
from outbox.errors import CursorBelowFloor, StorageFailed
from outbox.ids import AgentId, Epoch, NodeId, Seq
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import (
    DeliveryState,
    Incident,
    LedgerFloor,
    OutboxSize,
    Quarantined,
    Reader,
    Remembered,
    TurnState,
)
from outbox.store import Store

FIRST, SECOND = Epoch("000001-0123456789ab"), Epoch("000002-0123456789ab")
ANN, MBP, LAB = AgentId("ann"), NodeId("mbp"), NodeId("lab")


def at(seq: int, epoch: Epoch = FIRST) -> Head:
    return Head(epoch, Seq(seq), b"")


def move(store: Store, seq: int, epoch: Epoch = FIRST) -> None:
    store.begin()
    store.move_floor(epoch, Seq(seq))
    store.commit()


def walk(store: Store, head: Head) -> list[int]:
    found = []
    while (page := store.read(head, 1, 1)) is not None:
        found += [entry.seq for entry in page.entries]
        head = page.checkpoint.head
    return found


def test_a_whole_outbox_has_no_floor(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 2, batch=3)
    assert store.floor() is None
    assert store.beginning() == start
    assert store.size().entries == 6
    assert [(batch.seq, batch.entries) for batch in store.oldest_batches(9)] == [(3, 3), (6, 3)]
    assert [batch.event_id for batch in store.oldest_batches(1)] == [world.event(3)]


def test_what_is_below_the_floor_is_gone_and_the_rest_still_verifies(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 4, batch=3)
    size = store.size()
    move(store, 6)
    floor = store.floor()
    assert floor is not None
    assert (floor.seq, store.beginning()) == (6, floor.head)
    assert (store.size().entries, store.size().bytes < size.bytes) == (6, True)
    assert walk(store, start) == walk(store, floor.head) == [*range(7, 13)], "0 means the floor"
    page = store.read(start, 100, 1 << 20)
    assert page is not None
    assert follow(floor.head, page) == store.head(), "a reader goes on from the signed floor"
    assert store.events_about(world.event(1)) == []
    assert [entry.seq for entry in store.events_about(world.event(7))] == [7]
    assert [batch.seq for batch in store.oldest_batches(9)] == [9, 12]
    for seq in (1, 5):
        with pytest.raises(CursorBelowFloor):
            store.read(at(seq), 10, 1000)
    assert store.head_at(FIRST, Seq(5)) is None
    assert store.head_at(FIRST, Seq(6)) == floor.head
    assert store.head_at(FIRST, Seq(12)) == store.head()
    world.fill(store, 1)
    assert store.head().seq == 13


@pytest.mark.parametrize("seq", [2, 3, 7, 99], ids=["inside", "again", "inside_again", "beyond"])
def test_a_floor_is_a_checkpoint_and_only_rises(store: Store, world: Any, seq: int) -> None:
    world.fill(store, 3, batch=3)
    move(store, 3)
    store.begin()
    with pytest.raises(StorageFailed):
        store.move_floor(FIRST, Seq(seq))
    store.rollback()
    floor = store.floor()
    assert floor is not None
    assert floor.seq == 3


def test_what_is_not_committed_is_not_forgotten(store: Store, world: Any) -> None:
    store.begin()
    world.append(store, world.entry(1, 1))
    with pytest.raises(StorageFailed, match="not committed"):
        store.move_floor(FIRST, Seq(1))
    store.rollback()
    assert store.head().seq == 0


def test_all_of_it_may_be_forgotten(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 2)
    move(store, 2)
    assert store.head().seq == 2
    assert store.size() == OutboxSize(0, 0)
    assert (store.read(start, 10, 1000), store.oldest_batches(9)) == (None, [])
    world.fill(store, 1)
    assert walk(store, start) == [3]


def test_a_rollback_brings_everything_back(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 3)
    store.begin()
    store.put_delivery(world.delivery(1, state=DeliveryState.PROCESSED, next_at_ms=None))
    store.remember(Remembered(agent=ANN, key="k", request_hash=b"", event_id=world.event(1)))
    store.put_received(world.received(1, state=TurnState.DONE))
    store.put_received(world.received(2, state=TurnState.DONE))
    store.commit()
    size = store.size()
    store.begin()
    store.move_floor(FIRST, Seq(2))
    store.prune_ledger(MBP, FIRST, Seq(1), 9)
    assert store.delivery(world.event(1), MBP) is None
    store.rollback()
    assert (store.floor(), store.size(), store.beginning()) == (None, size, start)
    assert walk(store, start) == [1, 2, 3]
    assert store.delivery(world.event(1), MBP) is not None
    assert store.remembered(ANN, "k") is not None
    assert [row.event_id for row in store.inbox(ANN, done=True, limit=9)] == [world.event(1), world.event(2)]


def test_deliveries_and_keys_go_with_the_last_entry_of_their_event(store: Store, world: Any) -> None:
    store.begin()
    world.append(store, world.entry(1, 1), world.entry(2, 2))
    world.append(store, world.entry(3, 1, attempt=2))
    for number in (1, 2):
        store.put_delivery(world.delivery(number, state=DeliveryState.PROCESSED, next_at_ms=None))
        row = Remembered(agent=ANN, key=f"k{number}", request_hash=b"", event_id=world.event(number))
        store.remember(row)
    store.commit()
    move(store, 2)
    assert store.delivery(world.event(1), MBP) is not None
    assert store.remembered(ANN, "k1") is not None
    assert store.delivery(world.event(2), MBP) is None
    assert store.remembered(ANN, "k2") is None
    assert store.first_position(world.event(1)) == (FIRST, 3)
    move(store, 3)
    assert store.delivery(world.event(1), MBP) is None
    assert store.count_deliveries() == {}


def test_what_is_owed_is_found_by_its_first_attempt(store: Store, world: Any) -> None:
    store.begin()
    for seq in range(1, 6):
        world.append(store, world.entry(seq, seq))
    world.append(store, world.entry(6, 3, attempt=2))
    states = (DeliveryState.PROCESSED, DeliveryState.REPLIED, DeliveryState.RETRY_PENDING)
    for number, state in enumerate(states, 1):
        store.put_delivery(world.delivery(number, state=state))
    store.put_delivery(world.delivery(4, kind="reply", state=DeliveryState.ACCEPTED))
    store.put_delivery(world.delivery(5, state=DeliveryState.ACCEPTED))
    assert store.first_owed(FIRST, Seq(6)) == (FIRST, 3)
    assert store.first_owed(FIRST, Seq(2)) is None
    store.put_delivery(world.delivery(3, state=DeliveryState.DEAD_LETTER))
    assert store.first_owed(FIRST, Seq(6)) == (FIRST, 5)
    assert store.first_owed(FIRST, Seq(4)) is None
    store.commit()


def test_a_floor_passes_from_epoch_to_epoch(store: Store, world: Any) -> None:
    start = store.head()
    world.fill(store, 2)
    store.begin()
    store.begin_epoch(SECOND)
    store.commit()
    for number in (11, 12, 13):
        store.begin()
        world.append(store, world.entry(number - 10, number))
        store.commit()
    assert [(batch.epoch, batch.seq) for batch in store.oldest_batches(3)] == [
        (FIRST, 1),
        (FIRST, 2),
        (SECOND, 1),
    ]
    assert store.size().entries == 5
    move(store, 1)
    assert walk(store, start) == [2, 1, 2, 3]
    move(store, 2, SECOND)
    assert walk(store, start) == walk(store, at(0, SECOND)) == [3]
    assert store.size().entries == 1
    with pytest.raises(CursorBelowFloor):
        store.read(at(1), 10, 1000)
    with pytest.raises(CursorBelowFloor):
        store.read(at(1, SECOND), 10, 1000)
    assert store.head_at(FIRST, Seq(2)) is None


def test_readers_are_kept_by_name(store: Store) -> None:
    rows = [Reader(node=node, epoch=FIRST, seq=Seq(3), unseen_ms=7) for node in (MBP, LAB)]
    store.begin()
    for row in rows:
        store.put_reader(row)
    store.commit()
    assert store.readers() == rows[::-1]
    store.begin()
    store.drop_reader(MBP)
    store.drop_reader(NodeId("nobody"))
    store.commit()
    assert store.readers() == rows[1:]


def test_how_far_a_ledger_was_forgotten_is_kept_by_source(store: Store) -> None:
    rows = [LedgerFloor(source=MBP, epoch=FIRST, seq=Seq(seq)) for seq in (3, 7)]
    store.begin()
    assert store.ledger_floor(MBP) is None
    store.put_ledger_floor(rows[0])
    store.commit()
    store.begin()
    store.put_ledger_floor(rows[1])
    assert store.ledger_floor(MBP) == rows[1]
    store.rollback()
    assert (store.ledger_floor(MBP), store.ledger_floor(LAB)) == (rows[0], None)


def test_only_finished_turns_of_that_outbox_below_its_floor_are_forgotten(store: Store, world: Any) -> None:
    done: dict[str, Any] = {"state": TurnState.DONE}
    store.begin()
    store.put_received(world.received(1))
    store.put_received(world.received(3, **done))
    store.put_received(world.received(2, **done))
    store.put_received(world.received(4, **done))
    store.put_received(world.received(5, seq=1, epoch=SECOND, **done))
    store.put_received(world.received(2, source=LAB, **done))
    assert store.prune_ledger(MBP, FIRST, Seq(3), 1) == 1
    assert (store.ledger(world.event(3)) != [], len(store.ledger(world.event(2)))) == (True, 1)
    assert store.prune_ledger(MBP, FIRST, Seq(3), 9) == 1
    assert store.prune_ledger(MBP, FIRST, Seq(3), 9) == 0
    assert store.prune_ledger(MBP, SECOND, Seq(0), 9) == 1
    store.commit()
    left = [(row.source, row.event_id) for row in store.inbox(ANN, done=True, limit=9)]
    assert left == [(MBP, world.event(1)), (MBP, world.event(5)), (LAB, world.event(2))]


def test_closed_incidents_and_old_quarantine_are_forgotten(store: Store) -> None:
    store.begin()
    store.put_incident(Incident(kind="late", subject="a", opened_at_ms=1, closed_at_ms=10))
    store.put_incident(Incident(kind="late", subject="b", opened_at_ms=1, closed_at_ms=11))
    store.put_incident(Incident(kind="late", subject="c", opened_at_ms=1))
    for seq in (3, 1, 2):
        row = Quarantined(source=MBP, epoch=FIRST, seq=Seq(seq), reason="r", header=b"", body=b"")
        store.quarantine(row)
    store.prune_incidents(11, 9, 2, 99)
    store.commit()
    assert [row.subject for row in store.incidents(open_only=False)] == ["b", "c"]
    assert [row.seq for row in store.quarantined()] == [1, 2]


@pytest.mark.parametrize(("bytes_max", "kept"), [(99, [1, 2, 3]), (8, [2, 3]), (7, [3]), (3, []), (0, [])])
def test_of_what_is_in_quarantine_the_newest_stay_within_so_many_bytes(
    store: Store, bytes_max: int, kept: list[int]
) -> None:
    store.begin()
    for seq in (1, 2, 3):
        store.quarantine(
            Quarantined(source=MBP, epoch=FIRST, seq=Seq(seq), reason="r", header=b"h", body=b"\x00bc")
        )
    store.prune_incidents(0, 9, 9, bytes_max)
    store.commit()
    assert [row.seq for row in store.quarantined()] == kept


def test_of_closed_incidents_the_newest_stay(store: Store) -> None:
    store.begin()
    for number in range(6):
        closed_at_ms = 10 + number // 2
        store.put_incident(Incident(kind="k", subject=str(number), opened_at_ms=1, closed_at_ms=closed_at_ms))
    store.put_incident(Incident(kind="k", subject="open", opened_at_ms=1))
    store.prune_incidents(0, 3, 9, 9)
    store.commit()
    left = [row.subject for row in store.incidents(open_only=False)]
    assert left == ["2", "3", "4", "5", "open"], "what was closed in the moment of the third stays with it"


def test_open_incidents_are_counted_and_found_oldest_first(store: Store) -> None:
    store.begin()
    for number, kind in enumerate(("a", "b", "a", "c", "a")):
        store.put_incident(Incident(kind=kind, subject=str(number), opened_at_ms=number))
    store.put_incident(Incident(kind="a", subject="over", opened_at_ms=1, closed_at_ms=2))
    store.commit()
    assert store.count_open_incidents() == {"a": 3, "b": 1, "c": 1}
    assert [row.subject for row in store.open_incidents({"a", "b"}, 4, 2)] == ["0", "1"]
    assert [row.subject for row in store.open_incidents({"a"}, 9, 9)] == ["0", "2", "4"]
    assert store.open_incidents((), 9, 9) == []
    assert [row.subject for row in store.newest_incidents(2, open_only=True)] == ["3", "4"]


# --- on disk

Open = Callable[[], Journal]


def test_the_floor_survives_a_restart_and_is_verified(open_journal: Open, world: Any, tmp_path: Path) -> None:
    journal = open_journal()
    world.fill(journal, 4, batch=2)
    move(journal, 4)
    journal.close()
    again = open_journal()
    assert again.verify(world.verify) == again.verify_tail(world.verify) == again.head()
    assert (again.beginning().seq, again.size().entries) == (4, 4)
    reader = JournalReader.open(tmp_path / "journal.db")
    assert reader.floor() == again.floor()
    assert reader.size() == again.size()
    reader.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM outbox WHERE position & 0xFFFF = 3",
        "DELETE FROM checkpoints WHERE position & 0xFFFF = 2",
        "DELETE FROM floors",
        "UPDATE floors SET position = position + 1",
        "INSERT INTO floors SELECT position + 1, hash, signature FROM floors",
        "INSERT INTO floors SELECT position, zeroblob(32), signature FROM checkpoints WHERE position & 7 = 4",
        "INSERT INTO floors SELECT position - 1, hash, signature FROM floors",
        "REPLACE INTO floors SELECT position, hash, signature FROM floors",
    ],
)
def test_retention_is_the_one_door(open_journal: Open, world: Any, sql: str) -> None:
    journal = open_journal()
    world.fill(journal, 4)
    move(journal, 2)
    with pytest.raises(StorageFailed):
        journal.database.execute(sql)
    assert journal.verify(world.verify) == journal.head()


def test_a_floor_that_was_tampered_with_is_seen(open_journal: Open, world: Any, tmp_path: Path) -> None:
    journal = open_journal()
    world.fill(journal, 4)
    move(journal, 2)
    journal.close()
    stranger = sqlite3.connect(tmp_path / "journal.db")
    stranger.executescript("DROP TRIGGER floors_no_update; UPDATE floors SET signature = zeroblob(64)")
    stranger.close()
    again = open_journal()
    with pytest.raises(Exception, match="not signed"):
        again.verify(world.verify)


def test_space_is_used_again(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    world.fill(journal, 20, batch=20, body=b"x" * 1000)
    pages = journal.database.rows("PRAGMA page_count")[0][0]
    for _ in range(5):
        move(journal, journal.head().seq - 20)
        world.fill(journal, 18, batch=20, body=b"x" * 1000)
    assert journal.database.rows("PRAGMA page_count")[0][0] <= pages * 1.1
