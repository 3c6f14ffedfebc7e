"""SQLite as this project uses it: durable, one writer, forward migrations, our errors.

WAL with ``synchronous=FULL``: one fsync a commit. A commit that returned survives a power cut; a commit that
raised has not happened, and its owner rolls back. After a failed *fsync* that is not certain any more, so the
process stops (the hint says so) and does not trust its memory.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Self

from outbox.errors import StorageFailed, StorageFull, WorldError
from outbox.kinds import Outcome
from outbox.limits import BUSY_TIMEOUT_MS, CACHE_KIB, WAL_BYTES, WAL_CHECKPOINT_PAGES
from outbox.migration import Migration, check_current, pending
from outbox.records import DeliveryState, Share, TurnState
from outbox.replacing import sync_directory
from outbox.tables import Value, Values

__all__ = ["NO_ROOM", "Database", "Migration"]

_READER = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
    "PRAGMA trusted_schema = OFF",
)
_WRITER = (
    *_READER,
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",  # a statement of many rows keeps what it may have to undo: else in a file
    "PRAGMA fullfsync = ON",  # macOS: fsync alone does not empty the drive's cache; elsewhere without effect
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA recursive_triggers = ON",  # else REPLACE deletes a row behind the append-only triggers' back
)

NO_ROOM = "free some space; the gateway goes on by itself"

_HINTS = {
    sqlite3.SQLITE_FULL: NO_ROOM,
    sqlite3.SQLITE_BUSY: "another program writes to this database; stop it",
    sqlite3.SQLITE_CANTOPEN: "check that the home exists and belongs to this user",
    sqlite3.SQLITE_READONLY: "check the file's permissions",
    sqlite3.SQLITE_CORRUPT: "restore from a backup",
    sqlite3.SQLITE_NOTADB: "this file is no database of ours; restore from a backup",
    sqlite3.SQLITE_IOERR: "check the disk; restart before trusting anything that was in flight",
}


# Before a value is bound, the module looks for an adapter of its type, unless it is a plain number or text;
# where there is none it looks on, by raising and catching, which takes longer than binding. These give back
# what they get, without a line of Python.
_NOTHING: dict[None, None] = {}
sqlite3.register_adapter(type(None), _NOTHING.get)
sqlite3.register_adapter(bytes, bytes)
for _text in (DeliveryState, Outcome, Share, TurnState):
    sqlite3.register_adapter(_text, str.__str__)


class Database:
    """One connection. Used by one thread; closed by its owner."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        """For packages that keep their tables here and speak plain SQL inside the open transaction."""
        self.path = path

    @classmethod
    def create(cls, path: Path, *, wal_bytes: int = WAL_BYTES) -> Self:
        """Open for writing, making the file (0600) when it is not there.

        Raises StorageFull, StorageFailed.
        """
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            sync_directory(path.parent)
        except OSError as error:
            raise StorageFailed(f"cannot create {path}: {error.strerror}") from None
        return cls.open(path, wal_bytes=wal_bytes)

    @classmethod
    def open(cls, path: Path, *, wal_bytes: int = WAL_BYTES) -> Self:
        """Open an existing file for writing, with a write-ahead log grown to ``wal_bytes`` (0: not grown).

        Raises StorageFull, StorageFailed.
        """
        database = cls._connect(path, "rw", _WRITER)
        try:
            if database.rows("PRAGMA journal_mode = WAL") != [("wal",)]:
                raise StorageFailed(f"{path} cannot use a write-ahead log", hint="use a local file system")
            _grow_wal(database, wal_bytes)
        except WorldError:
            database.close()
            raise
        return database

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open beside the writer, for reading only. Raises StorageFailed.

        Whoever opens a file first makes an index of its write-ahead log beside it. On a full disk a reader
        makes do with one of its own, in memory.
        """
        try:
            return cls._connect(path, "ro", _READER)
        except StorageFull:
            return cls._connect(path, "ro&readonly_shm=1", _READER)

    @classmethod
    def open_to_look(cls, path: Path) -> Self:
        """Open for reading what a process may have left that was killed while it made the file: SQLite rolls
        that back first, for which a reader needs leave to write. Raises StorageFull, StorageFailed."""
        return cls._connect(path, "rw", _READER)

    @classmethod
    def _connect(cls, path: Path, mode: str, pragmas: Sequence[str]) -> Self:
        try:
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                cached_statements=256,
            )
        except sqlite3.Error as error:
            _fail(error)
        database = cls(connection, path)
        try:
            database._need_index()
            for pragma in pragmas:
                database.rows(pragma)
        except WorldError:
            database.close()
            raise
        return database

    def _need_index(self) -> None:
        """Raises StorageFull when there is no room for the index of the write-ahead log, StorageFailed."""
        try:
            self.connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE:
                hint = "free some space, then try again"
                raise StorageFull(f"database: no room to open {self.path.name}", hint=hint) from None
            _fail(error)

    def rows(self, sql: str, values: Sequence[Value] = ()) -> list[Values]:
        """All rows of a query that is bounded by its own text. Raises StorageFull, StorageFailed."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            _fail(error)

    def execute(self, sql: str, values: Sequence[Value] = ()) -> int:
        """Run a statement and return how many rows it changed. Raises StorageFull, StorageFailed."""
        try:
            return self.connection.execute(sql, values).rowcount
        except sqlite3.Error as error:
            _fail(error)

    @property
    def in_transaction(self) -> bool:
        """Whether one is open."""
        return self.connection.in_transaction

    @property
    def changes(self) -> int:
        """Rows that were changed since it was opened, those of transactions that were taken back too."""
        return self.connection.total_changes

    def write_at_commit(self) -> None:
        """Need room for nothing but a commit: what a transaction changes stays in memory until then.

        Else SQLite writes what does not fit into its cache when it likes, and what only asks fails by that.
        """
        self.rows("PRAGMA cache_spill = OFF")

    def begin(self) -> None:
        """Open a write transaction. Raises StorageFailed when one is open."""
        self.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make it durable. Raises StorageFull, StorageFailed: nothing of it is kept then."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Forget the open transaction; does nothing when none is open (some errors have done it already)."""
        if self.in_transaction:
            self.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin; commit at the end, roll back on any exception."""
        self.begin()
        try:
            yield
            self.commit()
        finally:
            self.rollback()

    def migrate(self, component: str, migrations: Sequence[Migration]) -> None:
        """Bring one component's tables up to date, a transaction a step.

        In a script every statement ends its line. Raises DatabaseTooNew, StorageFull, StorageFailed.
        """
        self.execute(
            "CREATE TABLE IF NOT EXISTS versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL)"
        )
        for step in pending(component, migrations, self.version(component)):
            with self.transaction():
                self._script(step.sql)
                self.execute(
                    "INSERT INTO versions VALUES (?, ?)"
                    " ON CONFLICT (component) DO UPDATE SET version = excluded.version",
                    (component, step.number),
                )

    def _script(self, sql: str) -> None:
        statement = ""
        for line in sql.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.execute(statement)
                statement = ""
        if statement.strip():
            self.execute(statement)

    def check_version(self, component: str, migrations: Sequence[Migration]) -> None:
        """For readers. Raises DatabaseTooNew, or StorageFailed when the writer has not migrated yet."""
        check_current(component, migrations, self.version(component))

    def version(self, component: str) -> int:
        """The last migration applied; 0 for none."""
        if not self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'versions'"):
            return 0
        found = self.rows("SELECT version FROM versions WHERE component = ?", (component,))
        return int(found[0][0]) if found else 0

    def close(self) -> None:
        """Roll back what is open and let the file go."""
        self.connection.close()


def _fail(error: sqlite3.Error) -> NoReturn:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    kind = StorageFull if code == sqlite3.SQLITE_FULL else StorageFailed
    raise kind(f"database: {error}", hint=_HINTS.get(code, "")) from error


def _grow_wal(database: Database, wal_bytes: int) -> None:
    """On a full disk only speed is lost, and space may be freed later: the file is opened all the same."""
    if not wal_bytes:
        return
    database.rows("PRAGMA wal_autocheckpoint = 0")
    try:
        database.execute("CREATE TABLE IF NOT EXISTS padding (zeros BLOB)")
        database.execute("INSERT INTO padding VALUES (zeroblob(?))", (wal_bytes,))
        database.execute("DROP TABLE padding")
        database.rows("PRAGMA wal_checkpoint(RESTART)")
    except StorageFull:
        database.rollback()
    database.rows(f"PRAGMA wal_autocheckpoint = {WAL_CHECKPOINT_PAGES}")
