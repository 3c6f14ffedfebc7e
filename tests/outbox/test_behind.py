"""Rows that stand among the changes and not in their tables: everybody sees them, and none is lost."""

import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from outbox.blobref import BlobId
from outbox.buffer import WriteBuffer
from outbox.chain import Head
from outbox.errors import StorageFailed, StorageFull
from outbox.ids import Seq
from outbox.journal import Journal
from outbox.limits import CHANGES_BYTES_MAX, ROWS_BEHIND_MAX
from outbox.memory import MemoryStore
from outbox.reader import JournalReader
from outbox.records import Delivery, DeliveryState, Share, TurnState
from outbox.sql.behind import SeenRows
from outbox.sql.blobs import BlobReads
from outbox.sql.rows import BufferedRows
from outbox.store import Store
from outbox.tables import DELIVERIES, RECEIVED
from tests.outbox.conftest import EPOCH, World
from tests.outbox.test_store import ANN, LAB, MBP, everything

Open = Callable[[], Journal]
BLOB = BlobId(64 * "a")


@pytest.fixture
def journal(open_journal: Open, world: World) -> Journal:
    """One that has asked its table once which events have come, and knows it since."""
    opened = open_journal()
    assert opened.ledger(world.event(1)) == []
    return opened


def in_tables(path: Path) -> tuple[int, ...]:
    """How many rows there are of each, and of changes that say something, to who knows nothing of changes."""
    with closing(sqlite3.connect(path)) as plain:
        counts = [
            plain.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("deliveries", "received", "cursors", "changes WHERE length(rows) > 0")
        ]
        return tuple(counts)


def send(store: Store, world: World, number: int) -> None:
    store.begin()
    store.put_delivery(world.delivery(number))
    store.put_received(world.received(number))
    store.put_cursor(MBP, Head(EPOCH, Seq(number), bytes(32)), b"s")
    store.commit()


def test_a_commit_writes_one_row_of_what_it_changed(journal: Journal, world: World, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        send(journal, world, number)
    assert in_tables(tmp_path / "journal.db") == (0, 0, 0, 3)
    assert journal.cursor(MBP) == Head(EPOCH, Seq(3), bytes(32))


def test_many_rows_go_into_their_tables(
    journal: Journal, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a row that changes again and again only the last form is written there."""
    monkeypatch.setattr("outbox.sql.rows.ROWS_BEHIND_MAX", 8)
    for number in (1, 2, 2, 2, 3):
        send(journal, world, number)
    assert in_tables(tmp_path / "journal.db") == (0, 0, 0, 5)
    send(journal, world, 4)
    assert in_tables(tmp_path / "journal.db") == (4, 4, 1, 0)
    send(journal, world, 5)
    assert in_tables(tmp_path / "journal.db") == (4, 4, 1, 1)


def test_many_bytes_go_into_their_tables(
    journal: Journal, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.sql.rows.CHANGES_BYTES_MAX", 3_000)
    for number in (1, 2, 3):
        journal.begin()
        journal.put_received(world.received(number, body=bytes(2_000)))
        journal.commit()
    assert in_tables(tmp_path / "journal.db") == (0, 3, 0, 0)


def test_what_a_full_journal_has_behind_fits_beside_the_rest_of_a_small_gateway() -> None:
    assert ROWS_BEHIND_MAX <= 4096
    assert CHANGES_BYTES_MAX <= 8 * 1024 * 1024


def test_a_question_of_a_transaction_finds_all_and_a_rollback_takes_it_out_again(
    journal: Journal, world: World, tmp_path: Path
) -> None:
    send(journal, world, 1)
    journal.begin()
    journal.put_delivery(world.delivery(1, state=DeliveryState.REPLIED))
    assert journal.count_deliveries() == {"replied": 1}
    journal.rollback()
    assert in_tables(tmp_path / "journal.db") == (0, 0, 0, 1)
    assert journal.delivery(world.event(1), MBP) == world.delivery(1)
    assert journal.count_deliveries() == {"emitted": 1}


def test_a_transaction_that_was_asked_writes_no_changes(
    journal: Journal, world: World, tmp_path: Path
) -> None:
    send(journal, world, 1)
    journal.begin()
    journal.put_delivery(world.delivery(2))
    assert len(journal.obligations(world.event(2))) == 1
    journal.put_delivery(world.delivery(2, state=DeliveryState.ACCEPTED))
    journal.commit()
    assert in_tables(tmp_path / "journal.db") == (2, 1, 1, 0)
    assert journal.count_deliveries() == {"accepted": 1, "emitted": 1}


def test_a_question_outside_of_transactions_writes_nothing(
    journal: Journal, world: World, tmp_path: Path
) -> None:
    send(journal, world, 1)
    before = (tmp_path / "journal.db-wal").read_bytes()
    assert journal.open_turns() == [world.received(1)]
    assert (tmp_path / "journal.db-wal").read_bytes() == before


def test_a_start_puts_into_the_tables_what_was_left(
    journal: Journal, open_journal: Open, world: World, tmp_path: Path
) -> None:
    send(journal, world, 1)
    journal.close()
    again = open_journal()
    assert in_tables(tmp_path / "journal.db") == (1, 1, 1, 0)
    send(again, world, 2)
    assert again.count_received() == {"queued": 2}


def test_a_journal_with_a_damaged_change_is_not_opened(
    journal: Journal, open_journal: Open, world: World, tmp_path: Path
) -> None:
    reader = JournalReader.open(tmp_path / "journal.db")
    send(journal, world, 1)
    journal.database.execute("UPDATE changes SET rows = x'83'")
    journal.close()
    with pytest.raises(StorageFailed, match="damaged"):
        open_journal()
    with pytest.raises(StorageFailed, match="damaged"):
        reader.count_deliveries()
    assert reader.head() == MemoryStore(world.identity).head(), "what has nothing to do with it is read"
    reader.close()


def test_a_full_disk_takes_nothing_away_and_answers(
    small_disk: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where many rows go to their tables, nor at a start, nor at a question."""
    monkeypatch.setattr("outbox.sql.rows.ROWS_BEHIND_MAX", 300)
    path = small_disk / "journal.db"
    journal, ballast, taken = Journal.create(path, world.identity, wal_bytes=0), small_disk / "ballast", 0
    ballast.write_bytes(b"\0" * 12 * 1024 * 1024)

    def take(number: int) -> None:
        journal.begin()
        for taken in range(number, number + 99):
            journal.put_received(world.received(taken, body=bytes(1_000)))
        journal.commit()

    with pytest.raises(StorageFull):  # noqa: PT012 - how much there is room for is not known
        for taken in count(0, 99):
            take(taken + 1)
    journal.rollback()
    kept = [world.received(number, body=bytes(1_000)) for number in range(1, taken + 1)]
    assert taken
    for _ in range(2):
        assert journal.open_turns() == kept
        with closing(JournalReader.open(path)) as reader:
            assert reader.open_turns() == kept
        journal.close()
        journal = Journal.open(path, wal_bytes=0)
    ballast.unlink()
    send(journal, world, taken + 1)
    assert journal.count_received() == {"queued": taken + 1}
    journal.close()


def test_who_asks_again_and_again_what_is_not_answered_leaves_rows_behind(
    journal: Journal, world: World, tmp_path: Path
) -> None:
    """Every page of a node asks."""
    for number in range(1, 9):
        journal.begin()
        journal.put_delivery(world.delivery(number))
        assert journal.unanswered(MBP, Seq(number), 1000, 9) == []
        journal.commit()
    assert in_tables(tmp_path / "journal.db")[0] == 1, "the first time it had to look"
    journal.begin()
    assert journal.unanswered(MBP, Seq(9), 1002, 9) == [world.delivery(1), world.delivery(2)]
    journal.rollback()


def test_what_is_not_answered_is_known_after_an_answer_was_taken_back(journal: Journal, world: World) -> None:
    send(journal, world, 1)
    journal.begin()
    journal.put_delivery(world.delivery(1, state=DeliveryState.ACCEPTED))
    assert journal.unanswered(MBP, Seq(9), 5000, 9) == []
    journal.rollback()
    assert journal.unanswered(MBP, Seq(9), 5000, 9) == [world.delivery(1)]


# --- readers


def test_a_reader_sees_what_is_behind_at_once_and_in_order(
    journal: Journal, world: World, tmp_path: Path
) -> None:
    with closing(JournalReader.open(tmp_path / "journal.db")) as reader:
        for number in (3, 1, 2):
            send(journal, world, number)
            assert reader.open_turns()[-1] == world.received(number)
        assert reader.open_turns() == [world.received(number) for number in (3, 1, 2)]
        journal.begin()
        journal.put_received(world.received(1, state=TurnState.DONE))
        assert reader.count_received() == {"queued": 3}, "not committed"
        journal.commit()
        assert reader.count_received() == {"done": 1, "queued": 2}
        assert reader.received(MBP, world.event(1), ANN) == world.received(1, state=TurnState.DONE)


def test_a_question_of_a_reader_is_of_one_moment(journal: Journal, world: World, tmp_path: Path) -> None:
    """Between its look at the changes and its look at the table all of them go from here to there."""
    send(journal, world, 1)
    with closing(JournalReader.open(tmp_path / "journal.db")) as reader:
        connection, looks = reader._rows.database.connection, 0

        def between(sql: str) -> None:
            nonlocal looks
            if sql.startswith("SELECT") and "changes" not in sql:
                looks += 1
                journal.begin()
                journal.put_received(world.received(1, state=TurnState.DONE))
                journal.count_received()
                journal.commit()

        connection.set_trace_callback(between)
        assert reader.count_received() == {"queued": 1}
        connection.set_trace_callback(None)
        assert looks
        assert reader.count_received() == {"done": 1}


def test_a_reader_that_stays_follows_through_restarts(
    journal: Journal, open_journal: Open, world: World, tmp_path: Path
) -> None:
    """The numbers of changes never begin again: else it would take new ones for those that it knows."""
    with closing(JournalReader.open(tmp_path / "journal.db")) as reader:
        for number in range(1, 5):
            send(journal, world, number)
            assert reader.count_received() == {"queued": number}
            journal.close()
            journal = open_journal()
            if number % 2:
                assert reader.count_received() == {"queued": number}


def test_a_reader_numbers_arrivals_as_the_table_will(journal: Journal, world: World, tmp_path: Path) -> None:
    """Who reads an inbox on from an event asks twice, and rows may go to their table between."""
    numbers = "SELECT event_id, arrival FROM received ORDER BY arrival"
    for number in (4, 2):
        send(journal, world, number)
    journal.begin()
    assert journal.count_received() == {"queued": 2}
    journal.commit()
    with closing(JournalReader.open(tmp_path / "journal.db")) as reader:
        for number in (5, 4, 1, 5, 3):
            send(journal, world, number)
            assert reader.count_received()
        shown = reader._rows.ask((RECEIVED,), numbers)
        journal.begin()
        assert journal.count_received() == {"queued": 5}
        journal.commit()
        assert shown == reader._rows.ask((RECEIVED,), numbers) == journal.database.rows(numbers)


# --- all of it together, and what sees a bug in it


def copied(journal: Journal, folder: Path, number: int) -> Path:
    """The files as a process leaves them that is killed now."""
    place = folder / f"killed{number}"
    place.mkdir()
    for file in journal.database.path.parent.glob("journal.db*"):
        shutil.copyfile(file, place / file.name)
    (place / "journal.db-shm").unlink(missing_ok=True)
    return place / "journal.db"


def change(store: Store, world: World, what: Random) -> None:
    number = what.randint(1, 9)
    state = what.choice([DeliveryState.EMITTED, *DeliveryState])
    store.put_delivery(
        world.delivery(number, state=state, next_at_ms=None, emitted_at_ms=1000 + what.randint(0, 9))
    )
    store.put_received(
        world.received(
            number,
            source=what.choice([MBP, LAB]),
            state=what.choice([*TurnState]),
            share=what.choice([Share.SOLE, Share.EVERYONE]),
        )
    )
    store.put_cursor(MBP, Head(EPOCH, Seq(number), bytes(32)), b"s")


QUESTIONS: tuple[Callable[[Store], object], ...] = (
    lambda store: store.deliveries(DeliveryState, 9),
    lambda store: store.open_turns(),
    lambda store: store.missing_blobs(9),
    lambda store: store.unnamed_blobs(9, 9),
    lambda store: store.naming(BLOB, 9),
    lambda store: store.first_unfetched(EPOCH, Seq(9), 9),
    lambda store: store.copies(),
    lambda store: store.incidents(open_only=False),
)
"""Some may be asked between two changes of one row: none may keep the first of them."""


def story(folder: Path, world: World, seed: int) -> None:
    """A journal with readers, one of which stays, killed now and then; a twin says what is right."""
    what = Random(seed)
    journal = Journal.create(folder / "journal.db", world.identity, wal_bytes=0)
    reader = JournalReader.open(folder / "journal.db")
    memory = MemoryStore(world.identity)
    try:
        for step in range(30):
            for store in (journal, memory):
                store.begin()
            for _ in range(what.randint(1, 3)):
                chance = what.getstate()
                for store in (journal, memory):
                    what.setstate(chance)
                    change(store, world, what)
                if what.random() < 0.2:
                    question = what.choice(QUESTIONS)
                    assert question(journal) == question(memory)
                assert journal.ledger(world.event(1)) == memory.ledger(world.event(1))
                place = MBP, Seq(what.randint(1, 9)), 1000 + what.randint(-1, 9), what.randint(1, 9)
                assert journal.unanswered(*place) == memory.unanswered(*place)
            end = what.choice(["commit", "commit", "commit", "roll back", "die"])
            for store in (journal, memory):
                store.commit() if end == "commit" else store.rollback()
            if end == "die":
                reader.close()
                left = copied(journal, folder, step)
                journal.close()
                reader = JournalReader.open(left)
                assert everything(reader, world) == everything(memory, world)
                journal = Journal.open(left, wal_bytes=0)
            for event in map(world.event, range(1, 10)):
                assert journal.delivery(event, MBP) == memory.delivery(event, MBP)
            asked = what.choice([(journal,), (reader,), (reader, journal), ()])
            for one in asked:
                assert everything(one, world) == everything(memory, world)
        assert everything(reader, world) == everything(memory, world)
    finally:
        reader.close()
        journal.close()


def stories(folder: Path, world: World, seeds: Iterable[int]) -> None:
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        story(place, world, seed)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sql.rows.ROWS_BEHIND_MAX", 12)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(4))
def test_nobody_can_tell_that_rows_are_behind(world: World, tmp_path: Path, seed: int) -> None:
    story(tmp_path, world, seed)


def keeps_changes(self: BufferedRows) -> None:
    self._caught_up = True
    for buffer in self._late:
        buffer.flush()


def keeps_rows_out(self: BufferedRows) -> None:
    self._number += 1
    self.database.execute("DELETE FROM changes")
    self.database.execute("INSERT INTO changes VALUES (?, x'')", (self._number,))
    self._caught_up = True


def looks_past(self: WriteBuffer[Any], key: Any) -> Any:
    return self.waiting.get(key) or self._recent.get(key)


def looks_behind_last(self: WriteBuffer[Any], key: Any) -> Any:
    return self.waiting.get(key) or self._recent.get(key) or self.behind.get(key)


def stays_caught_up(self: WriteBuffer[Any]) -> None:
    self.waiting.clear()
    self._recent.clear()


def learns_nothing(self: SeenRows) -> None:
    del self


def numbers_from_one(self: BufferedRows) -> None:
    BufferedRows_kept(self)
    self._number = 0 if not any(buffer.behind for buffer in self._late) else self._number


BufferedRows_kept = BufferedRows.kept


def writes_as_for_a_commit(self: Journal, limit: int) -> object:
    self._rows.before_commit()
    return BlobReads.missing_blobs(self, limit)


def takes_no_older_one(self: Journal, row: Delivery) -> None:
    self._rows.put(DELIVERIES, row)


PLANTED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "the changes stay": (BufferedRows, "catch_up", keeps_changes),
    "the changes go and the rows do not come": (BufferedRows, "catch_up", keeps_rows_out),
    "who looks for a row does not look among the changes": (WriteBuffer, "get", looks_past),
    "who looks for a row finds an older one": (WriteBuffer, "get", looks_behind_last),
    "a rollback does not take rows out again": (WriteBuffer, "take_back", stays_caught_up),
    "a reader does not look among the changes": (SeenRows, "_learn", learns_nothing),
    "an older one that is not answered is passed over": (Journal, "put_delivery", takes_no_older_one),
    "a question keeps what is changed after it": (Journal, "missing_blobs", writes_as_for_a_commit),
    "numbers begin again": (BufferedRows, "kept", numbers_from_one),
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_would_be_seen(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    owner, name, planted = PLANTED[bug]
    monkeypatch.setattr(owner, name, planted)
    with pytest.raises((AssertionError, StorageFailed)):
        stories(tmp_path, world, range(6))


def test_a_reader_that_looks_for_one_row_fills_no_table(
    open_journal: Open, world: World, tmp_path: Path
) -> None:
    """Such questions are asked on event loops, and thousands of rows may be behind."""
    journal = open_journal()
    for number in range(1, 30):
        send(journal, world, number)
    reader = JournalReader.open(tmp_path / "journal.db")
    try:
        asked: list[str] = []
        reader._rows.database.connection.set_trace_callback(asked.append)
        assert reader.delivery(world.event(7), MBP) == world.delivery(7)
        assert reader.cursor(MBP) == Head(EPOCH, Seq(29), bytes(32))
        assert not [sql for sql in asked if "INSERT" in sql]
        assert len(reader.deliveries(DeliveryState, 100)) == 29
        send(journal, world, 30)
        assert len(reader.deliveries(DeliveryState, 100)) == 30
        assert [row.event_id for row in reader.open_turns()] == [world.event(n) for n in range(1, 31)]
    finally:
        reader.close()
