import sqlite3
import stat
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from outbox.database import Database, Migration
from outbox.errors import DatabaseTooNew, StorageFailed, StorageFull
from outbox.kinds import Outcome
from outbox.records import DeliveryState, Share, TurnState
from outbox.tables import Value

ONE = Migration(1, "a table", "CREATE TABLE t (x INTEGER NOT NULL);\n")
TWO = Migration(
    2,
    "a column and a trigger",
    "ALTER TABLE t ADD COLUMN y TEXT;\nCREATE TRIGGER t_kept BEFORE DELETE ON t\n"
    "    BEGIN SELECT RAISE(ABORT, 'kept'); END;\n",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "with space?" / "data.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    path.parent.mkdir()
    made = Database.create(path, wal_bytes=0)
    yield made
    made.close()


@pytest.mark.parametrize("value", [None, b"", b"\x00\xff", "ä", 1 << 62, -1])
def test_what_is_bound_comes_back(database: Database, value: Value) -> None:
    ((found, kind),) = database.rows("SELECT ?1, typeof(?1)", (value,))
    assert found == value
    assert type(found) is type(value)
    assert kind == {type(None): "null", bytes: "blob", str: "text", int: "integer"}[type(value)]


@pytest.mark.parametrize("states", [DeliveryState, TurnState, Share, Outcome])
def test_states_are_bound_as_their_text(database: Database, states: type[StrEnum]) -> None:
    for state in states:
        assert database.rows("SELECT ?1, typeof(?1)", (state,)) == [(state.value, "text")]


def test_commits_are_synchronous_and_the_file_is_private(database: Database) -> None:
    database.migrate("t", [ONE])
    assert database.rows("PRAGMA synchronous") == [(2,)]
    assert database.rows("PRAGMA journal_mode") == [("wal",)]
    assert database.rows("PRAGMA fullfsync") == [(1,)]
    files = list(database.path.parent.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_the_write_ahead_log_is_grown_at_start(path: Path, database: Database) -> None:
    database.close()
    grown = Database.open(path, wal_bytes=1 << 20)
    assert path.with_name("data.db-wal").stat().st_size >= 1 << 20
    assert grown.rows("SELECT name FROM sqlite_schema WHERE name = 'padding'") == []
    assert grown.rows("PRAGMA wal_autocheckpoint") == [(1000,)]
    grown.close()


def test_a_transaction_is_kept_whole_or_not_at_all(database: Database) -> None:
    database.migrate("t", [ONE])
    with database.transaction():
        assert database.execute("INSERT INTO t VALUES (1), (2)") == 2
    with pytest.raises(StorageFailed), database.transaction():
        database.execute("INSERT INTO t VALUES (3), (NULL)")
    assert database.rows("SELECT x FROM t") == [(1,), (2,)]
    assert not database.in_transaction
    database.rollback()


def test_any_error_of_the_caller_rolls_back(database: Database) -> None:
    database.migrate("t", [ONE])

    def fail() -> None:
        database.execute("INSERT INTO t VALUES (1)")
        raise KeyError

    with pytest.raises(KeyError), database.transaction():
        fail()
    assert database.rows("SELECT x FROM t") == []


def test_a_file_is_opened_on_a_full_disk(
    path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.database._WRITER", ("PRAGMA max_page_count = 10",))
    full = Database.open(path, wal_bytes=1 << 20)
    assert not full.in_transaction
    assert full.rows("PRAGMA wal_autocheckpoint") == [(1000,)]
    full.close()


def test_a_second_writer_is_told_so(path: Path, database: Database) -> None:
    other = Database.open(path, wal_bytes=0)
    other.rows("PRAGMA busy_timeout = 1")
    with database.transaction(), pytest.raises(StorageFailed) as caught:
        other.begin()
    assert "another program" in caught.value.hint
    other.close()


def test_migrations_are_applied_once_for_each_component(database: Database) -> None:
    database.migrate("t", [ONE])
    database.execute("INSERT INTO t VALUES (1)")
    database.migrate("t", [ONE, TWO])
    database.migrate("t", [ONE, TWO])
    database.migrate("u", [Migration(1, "another", "CREATE TABLE u (z)")])
    assert (database.version("t"), database.version("u"), database.version("v")) == (2, 1, 0)
    assert database.rows("SELECT x, y FROM t") == [(1, None)]
    with pytest.raises(StorageFailed, match="kept"):
        database.execute("DELETE FROM t")


def test_a_migration_that_fails_leaves_nothing_behind(database: Database) -> None:
    broken = Migration(2, "broken", "CREATE TABLE half (x);\nCREATE NONSENSE;\n")
    with pytest.raises(StorageFailed):
        database.migrate("t", [ONE, broken])
    assert database.version("t") == 1
    assert database.rows("SELECT name FROM sqlite_schema WHERE name = 'half'") == []


def test_a_newer_database_is_not_touched(database: Database) -> None:
    database.migrate("t", [ONE, TWO])
    with pytest.raises(DatabaseTooNew):
        database.migrate("t", [ONE])


def test_a_reader_sees_commits_and_cannot_write(path: Path, database: Database) -> None:
    reader = Database.open_read_only(path)
    with pytest.raises(StorageFailed, match="version 0"):
        reader.check_version("t", [ONE])
    database.migrate("t", [ONE])
    reader.check_version("t", [ONE])
    with database.transaction():
        database.execute("INSERT INTO t VALUES (1)")
        assert reader.rows("SELECT x FROM t") == []
    assert reader.rows("SELECT x FROM t") == [(1,)]
    with pytest.raises(StorageFailed) as caught:
        reader.execute("INSERT INTO t VALUES (2)")
    assert "permissions" in caught.value.hint
    reader.close()


def test_a_reader_opens_what_no_writer_has_open(path: Path, database: Database) -> None:
    database.migrate("t", [ONE])
    database.close()
    reader = Database.open_read_only(path)
    assert reader.version("t") == 1
    reader.close()


def test_what_cannot_be_opened_says_why(path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot create"):
        Database.create(path)
    for open_it in (Database.open, Database.open_read_only):
        with pytest.raises(StorageFailed) as caught:
            open_it(path)
        assert "home exists" in caught.value.hint


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    strange = tmp_path / "data.db"
    strange.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageFailed) as caught:
        Database.open(strange)
    assert "no database of ours" in caught.value.hint


def test_a_file_that_cannot_have_a_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = sqlite3.connect(":memory:", isolation_level=None)
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: memory)
    with pytest.raises(StorageFailed, match="write-ahead log"):
        Database.open(Path("memory.db"))


def test_a_full_disk_fails_whole_and_recovers_by_itself(database: Database) -> None:
    database.migrate("t", [ONE])
    pages = database.rows("PRAGMA page_count")[0][0]
    database.rows(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageFull) as caught, database.transaction():
        database.execute("INSERT INTO t VALUES (1), (zeroblob(100000))")
    assert caught.value.retryable
    assert "free some space" in caught.value.hint
    assert database.rows("SELECT x FROM t") == []
    database.rows("PRAGMA max_page_count = 100000")
    with database.transaction():
        database.execute("INSERT INTO t VALUES (1)")
    assert database.rows("SELECT x FROM t") == [(1,)]
