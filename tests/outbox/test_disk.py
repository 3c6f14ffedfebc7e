"""A journal on a disk that is really full, and a write-ahead log beside a reader that stays."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.engine.redrive import NEWEST
from gateway.harness.real.disk import SmallDisk
from outbox.chain import Head
from outbox.database import _WRITER
from outbox.errors import StorageFull
from outbox.ids import AgentId
from outbox.journal import Journal
from outbox.limits import WAL_BYTES
from outbox.memory import MemoryStore
from outbox.reader import JournalReader
from outbox.records import DeliveryState
from tests.outbox.conftest import World
from tests.outbox.test_store import ANN, everything, write_everything

event = World().event

MIB = 1024 * 1024
ROWS = 600
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "deliveries by state": lambda store: store.count_deliveries(),
    "where deliveries stand": lambda store: store.count_unaccepted(),
    "list of deliveries": lambda store: store.deliveries(DeliveryState, 5),
    "dead letters": lambda store: store.dead_letters(NEWEST, 5),
    "timers": lambda store: store.due_deliveries(1 << 40, 5),
    "turns": lambda store: store.open_turns(),
    "inbox": lambda store: store.inbox(ANN, done=True, limit=5),
    "turns by state": lambda store: store.count_received(),
    "trace": lambda store: [store.obligations(event(7)), store.ledger(event(7))],
    "cursors": lambda store: store.cursors(),
    "incidents": lambda store: store.incidents(open_only=False),
    "pages": lambda store: store.read(store.genesis(), 5, MIB),
    "retention": lambda store: [store.size(), store.first_owed(store.head().epoch, store.head().seq)],
}


class Full:
    """A journal on a disk that is full, and its twin in memory."""

    def __init__(self, place: Path, world: World) -> None:
        self.path, self.disk, self.twin = place / "journal.db", SmallDisk(place), MemoryStore(world.identity)
        self.journal = Journal.create(self.path, world.identity, wal_bytes=0)
        self.reader = JournalReader.open(self.path)
        for store in (self.journal, self.twin):
            for number in range(2, 9):
                store.begin()
                write_everything(store, world, number)
                store.commit()
            for first in range(9, ROWS, 100):
                store.begin()
                for number in range(first, first + 100):
                    store.put_delivery(world.delivery(number, next_at_ms=number * 7919 % 10_007))
                    store.put_received(world.received(number, to_agent=AgentId(f"a{number % 7}")))
                store.commit()
        self.disk.fill()
        with pytest.raises(StorageFull):
            world.fill(self.journal, 2, body=bytes(9000))
        self.journal.rollback()


def test_a_full_disk_loses_nothing_and_is_left_behind(small_disk: Path, world: Any) -> None:
    journal = Journal.create(small_disk / "journal.db", world.identity, wal_bytes=0)
    world.fill(journal, 2, body=b"x" * 1000)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 8 * MIB)
    with pytest.raises(StorageFull) as caught:
        world.fill(journal, 1_000, batch=9, body=b"x" * 9000)
    assert caught.value.retryable
    journal.rollback()
    kept = journal.head()
    assert journal.verify(world.verify) == kept, "reads go on"
    journal.close()
    again = Journal.open(small_disk / "journal.db")
    assert again.head() == kept, "it starts on a full disk, and nothing is missing"
    ballast.unlink()
    world.fill(again, 3, body=b"x" * 9000)
    assert again.verify(world.verify).seq == kept.seq + 3
    again.close()


@pytest.fixture
def full(small_disk: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    """Rows wait for their tables, more than the cache holds; and not a byte is free."""
    monkeypatch.setattr("outbox.database._READER", ("PRAGMA busy_timeout = 5000", "PRAGMA cache_size = 8"))
    monkeypatch.setattr("outbox.database._WRITER", (*_WRITER, "PRAGMA cache_size = 8"))
    made = Full(small_disk, world)
    yield made
    made.reader.close()
    made.journal.close()


def in_a_tick(journal: Journal, ask: Callable[[Journal], Any]) -> Any:
    journal.begin()
    try:
        answer = ask(journal)
        journal.commit()
    finally:
        journal.rollback()
    return answer


@pytest.mark.parametrize("question", [*QUESTIONS, "all of them"])
def test_a_question_needs_no_room(full: Full, world: World, question: str) -> None:
    """In a tick, between two, over a connection that was there and over one that is made now."""
    ask = QUESTIONS.get(question) or partial(everything, world=world)
    expected = ask(full.twin)
    assert ask(full.journal) == expected
    assert in_a_tick(full.journal, ask) == expected
    assert ask(full.journal) == expected, "nothing has moved"
    assert ask(full.reader) == expected
    with closing(JournalReader.open(full.path)) as reader:
        assert ask(reader) == expected


def test_what_changes_something_needs_room_and_is_not_taken_for_a_question(full: Full, world: World) -> None:
    def write(journal: Journal) -> None:
        journal.put_delivery(world.delivery(1, state=DeliveryState.REPLIED))
        journal.count_deliveries()

    def drop(journal: Journal) -> None:
        journal.open_turns()
        journal.drop_agent(ANN)

    def append(journal: Journal) -> None:
        seq = journal.head().seq + 1
        world.append(journal, world.entry(seq, seq, body=bytes(9000)))
        journal.open_turns()

    before = everything(full.twin, world)
    for change in (write, drop, append):
        with pytest.raises(StorageFull):
            in_a_tick(full.journal, change)
        assert everything(full.journal, world) == everything(full.reader, world) == before


def test_room_is_found_when_there_is_some_and_not_before(full: Full, world: World) -> None:
    in_a_tick(full.journal, Journal.open_turns)
    assert full.journal.read_only, "there was none for the rows"
    full.journal.find_room()
    assert full.journal.read_only
    full.disk.free()
    in_a_tick(full.journal, Journal.count_open_incidents)
    assert full.journal.read_only, "what has written nothing proves nothing"
    full.journal.find_room()
    assert not full.journal.read_only
    assert everything(full.journal, world) == everything(full.reader, world) == everything(full.twin, world)
    world.fill(full.journal, 3)
    full.journal.close()
    with closing(Journal.open(full.path)) as again:
        assert again.count_deliveries() == full.twin.count_deliveries()
        assert again.verify(world.verify).seq == full.twin.head().seq + 3


def test_a_journal_that_nobody_has_open_is_read_and_who_would_write_is_told_why_not(
    full: Full, world: World
) -> None:
    """Whoever opens it first makes an index of its log beside it, for which there is no room."""
    full.reader.close()
    full.journal.close()
    full.disk.fill()
    for _ in range(2):
        with closing(JournalReader.open(full.path)) as reader:
            assert everything(reader, world) == everything(full.twin, world)
        with pytest.raises(StorageFull) as caught:
            Journal.open(full.path)
        assert caught.value.hint
    full.disk.free()
    with closing(Journal.open(full.path)) as again:
        assert everything(again, world) == everything(full.twin, world)


def test_room_that_retention_makes_is_room_for_what_comes(small_disk: Path, world: Any) -> None:
    journal = Journal.create(small_disk / "journal.db", world.identity, wal_bytes=0)
    for _ in range(40):
        world.fill(journal, 9, batch=9, body=b"x" * 1000)
        if journal.size().entries > 500:
            journal.begin()
            journal.move_floor(journal.head().epoch, journal.oldest_batches(50)[-1].seq)
            journal.commit()
    assert journal.head().seq == 40 * 81
    assert journal.verify(world.verify) == journal.head()
    journal.close()


@pytest.mark.parametrize("asks", ["verify", "page", "rows"])
def test_a_reader_that_stays_does_not_let_the_log_grow(
    open_journal: Callable[[], Journal], world: Any, tmp_path: Path, asks: str
) -> None:
    journal = open_journal()
    reader = JournalReader.open(tmp_path / "journal.db")
    at, largest, written = reader.genesis(), 0, 0
    while written < 6 * WAL_BYTES:
        world.fill(journal, 8, batch=8, body=b"x" * 16_000)
        written += 8 * 8 * 16_000
        if asks == "verify":
            reader.verify(world.verify, Head(at.epoch, at.seq, at.hash))
        elif asks == "page":
            page = reader.read(at, 100, MIB)
            at = page.checkpoint.head if page is not None else at
        else:
            reader.count_deliveries()
            reader.open_turns()
        largest = max(largest, (tmp_path / "journal.db-wal").stat().st_size)
        at = reader.head() if asks == "verify" else at
    reader.close()
    assert largest < 2 * WAL_BYTES, "each question ends its own transaction"
