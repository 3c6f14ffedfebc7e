"""What only the journal promises: what is on disk, and what happens when that is disturbed."""

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outbox.chain import Head
from outbox.database import Database, Migration
from outbox.errors import BadCheckpoint, BrokenChain, DatabaseTooNew, StorageFailed, StorageFull
from outbox.ids import AgentId, NodeId, Seq
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Incident
from outbox.schema import COMPONENT, MIGRATIONS

Open = Callable[[], Journal]


def test_a_journal_is_made_once_and_opened_after(tmp_path: Path, world: Any) -> None:
    path = tmp_path / "journal.db"
    with pytest.raises(StorageFailed):
        Journal.open(path)
    Journal.create(path, world.identity).close()
    with pytest.raises(StorageFailed, match="belongs to a node already"):
        Journal.create(path, world.identity)
    journal = Journal.open(path)
    assert journal.identity() == world.identity
    assert journal.head() == journal.genesis()
    journal.close()


def test_a_creation_that_was_cut_short_is_repeated(tmp_path: Path, world: Any) -> None:
    path = tmp_path / "journal.db"
    path.touch()
    with pytest.raises(StorageFailed, match="belongs to no node") as caught:
        Journal.open(path, wal_bytes=0)
    assert "gateway init" in caught.value.hint
    Journal.create(path, world.identity, wal_bytes=0).close()


def test_a_journal_is_made_when_it_is_some_nodes(tmp_path: Path, world: Any) -> None:
    path = tmp_path / "journal.db"
    assert not Journal.made(path)
    path.touch()
    assert not Journal.made(path)
    database = Database.create(path, wal_bytes=0)
    database.migrate(COMPONENT, MIGRATIONS)
    database.close()
    assert not Journal.made(path), "tables alone are nobody's"
    Journal.create(path, world.identity, wal_bytes=0).close()
    assert Journal.made(path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailed):
        Journal.made(path)


def test_a_journal_of_a_newer_version_is_left_alone(open_journal: Open, tmp_path: Path) -> None:
    journal = open_journal()
    journal.database.execute("UPDATE versions SET version = 99 WHERE component = 'journal'")
    with pytest.raises(DatabaseTooNew):
        open_journal()
    with pytest.raises(DatabaseTooNew):
        JournalReader.open(tmp_path / "journal.db")


def test_everything_committed_is_there_after_a_restart(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    world.fill(journal, 3, batch=2)
    journal.begin()
    journal.put_delivery(world.delivery(1))
    journal.put_received(world.received(2))
    journal.commit()
    journal.begin()
    journal.put_received(world.received(3))
    journal.close()
    again = open_journal()
    assert again.head() == journal.head()
    assert again.delivery(world.event(1), NodeId("mbp")) == world.delivery(1)
    assert again.open_turns() == [world.received(2)]


def test_other_packages_write_in_the_same_transaction(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    journal.database.migrate("auth", [Migration(1, "invites", "CREATE TABLE invites (id TEXT);\n")])
    for keep in (False, True):
        journal.begin()
        journal.database.connection.execute("INSERT INTO invites VALUES ('i')")
        journal.put_delivery(world.delivery(1))
        if keep:
            journal.commit()
        journal.rollback()
        assert journal.database.rows("SELECT count(*) FROM invites") == [(int(keep),)]
        assert (journal.delivery(world.event(1), NodeId("mbp")) is not None) is keep


def test_a_buffer_never_grows_past_its_bound(
    open_journal: Open, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.sql.rows.ROWS_BUFFERED_MAX", 3)
    journal = open_journal()
    journal.begin()
    for number in range(1, 6):
        journal.put_delivery(world.delivery(number))
    assert journal.database.rows("SELECT count(*) FROM deliveries") == [(3,)]
    assert journal.delivery(world.event(1), NodeId("mbp")) == world.delivery(1)
    journal.commit()
    assert journal.count_deliveries() == {"emitted": 5}


@pytest.mark.parametrize("table", ["outbox", "checkpoints"])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM {0}",
        "UPDATE {0} SET position = position + 1",
        "REPLACE INTO {0} SELECT * FROM {0}",
    ],
)
def test_the_outbox_is_append_only(open_journal: Open, world: Any, table: str, sql: str) -> None:
    journal = open_journal()
    world.fill(journal, 2)
    with pytest.raises(StorageFailed, match="append-only"):
        journal.database.execute(sql.format(table))
    assert journal.verify(world.verify) == journal.head()


# --- readers beside the writer


def test_a_reader_follows_what_is_committed(open_journal: Open, world: Any, tmp_path: Path) -> None:
    journal = open_journal()
    reader = JournalReader.open(tmp_path / "journal.db")
    assert reader.identity() == world.identity
    assert reader.read(reader.head(), 10, 1000) is None
    world.fill(journal, 2)
    journal.begin()
    world.append(journal, world.entry(3, 3, corr=1))
    journal.put_delivery(world.delivery(1))
    assert (reader.head().seq, reader.delivery(world.event(1), NodeId("mbp"))) == (2, None)
    journal.commit()
    page = reader.read(reader.genesis(), 10, 10_000)
    assert page is not None
    assert [entry.seq for entry in page.entries] == [1, 2, 3]
    assert [entry.seq for entry in reader.events_about(world.event(1))] == [1, 3]
    assert reader.delivery(world.event(1), NodeId("mbp")) == world.delivery(1)
    assert reader.verify(world.verify) == journal.head()
    reader.close()


# --- crashes

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from conftest import World
from outbox.ids import Seq
from outbox.journal import Journal

world = World()
journal = Journal.open(Path(sys.argv[1]), wal_bytes=0)
while True:
    first = journal.head().seq + 1
    journal.begin()
    world.append(journal, *(world.entry(seq, seq, body=b"x" * 3000) for seq in range(first, first + 7)))
    for seq in range(first, first + 7):
        journal.put_delivery(world.delivery(seq))
        journal.put_received(world.received(seq))
    journal.commit()
    print(journal.head().seq, flush=True)
"""


@pytest.mark.parametrize("answers", [1, 20, 60])
def test_sigkill_at_any_moment_loses_nothing_committed(
    open_journal: Open, world: Any, tmp_path: Path, answers: int
) -> None:
    open_journal().close()
    command = [sys.executable, "-c", WRITER, str(tmp_path / "journal.db"), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(answers)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().split()]
        writer.wait(timeout=60)
    journal = open_journal()
    reached = journal.head().seq
    assert told == [*range(7, told[-1] + 1, 7)]
    assert reached in (told[-1], told[-1] + 7)
    assert journal.verify_tail(world.verify) == journal.verify(world.verify) == journal.head()
    assert journal.count_deliveries() == {"emitted": reached}
    assert [row.seq for row in journal.open_turns()] == [*range(1, reached + 1)]


def test_a_full_disk_fails_the_tick_whole_and_the_next_one_goes_on(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    world.fill(journal, 1)
    pages = journal.database.rows("PRAGMA page_count")[0][0]
    journal.database.rows(f"PRAGMA max_page_count = {pages + 4}")
    before = journal.head()
    journal.begin()
    journal.put_incident(Incident(kind="late", subject="x", opened_at_ms=1))
    with pytest.raises(StorageFull):
        world.append(journal, *(world.entry(seq, seq, body=b"x" * 9000) for seq in range(2, 20)))
    with pytest.raises(StorageFailed):
        journal.commit()
    journal.rollback()
    assert (journal.head(), journal.incidents(open_only=False)) == (before, [])
    page = journal.read(journal.genesis(), 10, 1000)
    assert page is not None
    assert page.checkpoint.head == before
    journal.database.rows("PRAGMA max_page_count = 100000")
    world.fill(journal, 3, body=b"x" * 9000)
    assert journal.verify(world.verify).seq == 4


def test_a_full_disk_at_commit_loses_rows_of_that_tick_only(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    pages = journal.database.rows("PRAGMA page_count")[0][0]
    journal.database.rows(f"PRAGMA max_page_count = {pages + 1}")
    journal.begin()
    for number in range(1, 300):
        journal.put_received(world.received(number, body=b"x" * 1000))
    with pytest.raises(StorageFull):
        journal.commit()
    journal.rollback()
    assert journal.count_received() == {}
    assert journal.received(NodeId("mbp"), world.event(1), AgentId("ann")) is None


# --- tampering

ONE_MORE = (
    "INSERT INTO outbox SELECT position + 1, event_id, 9, kind, corr_id, header, body, blob FROM outbox"
    " ORDER BY position DESC LIMIT 1"
)

UNGUARDED = (
    "DROP TRIGGER outbox_no_update; DROP TRIGGER outbox_no_delete; DROP TRIGGER checkpoints_no_update;"
)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("UPDATE outbox SET body = x'00' WHERE position & 0xFFFF = 2", BrokenChain),
        ("UPDATE outbox SET header = header || x'20' WHERE position & 0xFFFF = 5", BrokenChain),
        ("DELETE FROM outbox WHERE position & 0xFFFF = 3", BrokenChain),
        ("DELETE FROM outbox WHERE position & 0xFFFF = 6", BrokenChain),
        (ONE_MORE, BrokenChain),
        ("UPDATE checkpoints SET signature = zeroblob(64) WHERE position & 0xFFFF = 4", BadCheckpoint),
        ("UPDATE checkpoints SET hash = zeroblob(32) WHERE position & 0xFFFF = 4", BadCheckpoint),
        ("UPDATE outbox SET body = 'text' WHERE position & 0xFFFF = 2", BrokenChain),
    ],
)
def test_verify_sees_what_was_tampered_with(
    open_journal: Open, world: Any, tmp_path: Path, sql: str, error: type[Exception]
) -> None:
    journal = open_journal()
    world.fill(journal, 3, batch=2)
    journal.close()
    stranger = sqlite3.connect(tmp_path / "journal.db")
    stranger.executescript(UNGUARDED + sql)
    stranger.close()
    with pytest.raises(error):
        open_journal().verify(world.verify)


def test_the_tail_is_the_last_batch(open_journal: Open, world: Any, tmp_path: Path) -> None:
    journal = open_journal()
    assert journal.verify_tail(world.verify) == journal.genesis()
    world.fill(journal, 1, batch=2)
    assert journal.verify_tail(world.verify) == journal.head()
    world.fill(journal, 2, batch=2)
    journal.close()
    stranger = sqlite3.connect(tmp_path / "journal.db")
    stranger.executescript(UNGUARDED + "UPDATE outbox SET body = x'00' WHERE position & 0xFFFF = 1")
    stranger.close()
    again = open_journal()
    assert again.verify_tail(world.verify) == again.head()
    with pytest.raises(BrokenChain):
        again.verify(world.verify)


def test_verification_tells_how_far_it_is(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    world.fill(journal, 3, batch=2)
    seen: list[tuple[int, int]] = []
    journal.verify(world.verify, progress=lambda done, goal: seen.append((done, goal)))
    assert seen == [(2, 6), (4, 6), (6, 6)]


def test_a_missing_checkpoint_is_a_storage_failure(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    world.fill(journal, 1)
    journal.database.execute("DROP TRIGGER checkpoints_no_delete")
    journal.database.execute("DELETE FROM checkpoints")
    with pytest.raises(StorageFailed, match="no checkpoint"):
        journal.read(Head(world.identity.epoch, Seq(0), b""), 10, 1000)


def test_a_damaged_row_is_a_storage_failure(open_journal: Open, world: Any) -> None:
    journal = open_journal()
    journal.begin()
    journal.put_delivery(world.delivery(1, node=NodeId("mbp"), to_agent=AgentId("bob")))
    journal.commit()
    journal.close()
    journal = open_journal()  # which puts it into its table
    journal.database.execute("UPDATE deliveries SET state = 'lost'")
    journal.close()
    journal = open_journal()  # which remembers nothing that it wrote
    with pytest.raises(StorageFailed, match="damaged"):
        journal.delivery(world.event(1), NodeId("mbp"))


KILLED_WHILE_MAKING = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("CREATE TABLE anything (x)")
connection.execute("BEGIN")
for _ in range(500):
    connection.execute("INSERT INTO anything VALUES (randomblob(1000))")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_journal_whose_making_was_killed_is_nobodys(tmp_path: Path) -> None:
    """Before it has a write-ahead log: what was half written lies beside it, and has to be rolled back."""
    path = tmp_path / "journal.db"
    subprocess.run([sys.executable, "-c", KILLED_WHILE_MAKING, str(path)], timeout=60, check=False)
    assert path.with_name("journal.db-journal").stat().st_size > 0
    assert not Journal.made(path)
    assert not path.with_name("journal.db-journal").exists()
