"""``room.db``: the update log and the snapshot of each room, in SQLite.

=============  ==========================================  ===========================================
table          columns                                     meaning
=============  ==========================================  ===========================================
``log``        seq, room, payload, sha256                  merged updates in the order they were applied
``snapshot``   room, payload, sha256                       what the log was last folded into
``quarantine`` room, reason, payload                       what could not be applied at a start
=============  ==========================================  ===========================================

``PRAGMA user_version`` is 1. WAL with ``synchronous=NORMAL``: a killed process loses nothing that was
appended; a power cut may lose the last moments, which any peer fills again, since each start writes under a
new client id. Rows are ordered by sequence number and carry a hash, so that a flipped bit is found.

A file that is no database, or a damaged one, is set aside under another name and the store starts empty;
the room is then filled by its peers. Everything else that is wrong (no access, disk full, a newer version)
is raised.
"""

import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stateroom.errors import RoomStoreFailed
from stateroom.limits import LOG_BYTES_MAX, LOG_ROWS_MAX

_VERSION = 1

_SCHEMA = """
CREATE TABLE log(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT NOT NULL, payload BLOB NOT NULL, sha256 BLOB NOT NULL
) STRICT;
CREATE TABLE snapshot(room TEXT PRIMARY KEY, payload BLOB NOT NULL, sha256 BLOB NOT NULL) STRICT;
CREATE TABLE quarantine(room TEXT NOT NULL, reason TEXT NOT NULL, payload BLOB NOT NULL) STRICT;
"""


class Stored(msgspec.Struct, frozen=True):
    """One piece of a room: the snapshot (``seq`` 0) or an entry of the log."""

    seq: int
    payload: bytes


class RoomStore:
    """One file for all rooms of a node. Calls block for a commit; safe from any thread, one at a time."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises RoomStoreFailed.

        ``set_aside`` afterwards names the damaged file that was moved out of the way, if there was one.
        """
        self.path = path
        self.set_aside: Path | None = None
        self._lock = threading.Lock()
        self._size: dict[str, tuple[int, int]] = {}
        self._last: dict[str, int] = {}
        try:
            self._db = self._open()
        except _Damaged:
            self.set_aside = _set_aside(path)
            self._db = self._open()

    def load(self, room: str) -> list[Stored]:
        """Snapshot and log of a room in order."""
        with self._transaction() as db:
            snapshot = db.execute("SELECT payload FROM snapshot WHERE room = ?", (room,)).fetchall()
            log = db.execute("SELECT seq, payload FROM log WHERE room = ? ORDER BY seq", (room,)).fetchall()
        self._size[room] = (len(log), sum(len(payload) for _, payload in log))
        self._last[room] = log[-1][0] if log else 0
        return [Stored(0, payload) for (payload,) in snapshot] + [Stored(*row) for row in log]

    def append(self, room: str, update: bytes) -> None:
        """Add one merged update: one commit. Raises RoomStoreFailed."""
        with self._transaction() as db:
            row = (room, update, _hash(update))
            self._last[room] = (
                db.execute("INSERT INTO log(room, payload, sha256) VALUES (?, ?, ?)", row).lastrowid or 0
            )
        rows, size = self._size.get(room, (0, 0))
        self._size[room] = (rows + 1, size + len(update))

    def wants_compaction(self, room: str) -> bool:
        """Whether the log has grown above its bounds."""
        rows, size = self._size.get(room, (0, 0))
        return rows > LOG_ROWS_MAX or size > LOG_BYTES_MAX

    def last(self, room: str) -> int:
        """Sequence number of the newest entry of a room's log that this process has written or loaded."""
        return self._last.get(room, 0)

    def compact(self, room: str, snapshot: bytes, upto: int) -> None:
        """Replace the snapshot, and the log up to a sequence number, by a snapshot that holds all of them.

        Raises RoomStoreFailed.
        """
        with self._transaction() as db:
            db.execute("DELETE FROM log WHERE room = ? AND seq <= ?", (room, upto))
            db.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", (room, snapshot, _hash(snapshot)))
        self._size[room] = (0, 0)

    def quarantine(self, room: str, stored: Stored, reason: str) -> None:
        """Take a piece that cannot be applied out of the room and keep it for the operator."""
        with self._transaction() as db:
            if stored.seq:
                db.execute("DELETE FROM log WHERE seq = ?", (stored.seq,))
            else:
                db.execute("DELETE FROM snapshot WHERE room = ?", (room,))
            db.execute("INSERT INTO quarantine VALUES (?, ?, ?)", (room, reason, stored.payload))

    def quarantined(self, room: str) -> list[tuple[str, bytes]]:
        """Reason and bytes of each piece that was taken out."""
        with self._transaction() as db:
            rows = db.execute("SELECT reason, payload FROM quarantine WHERE room = ?", (room,))
            return [(reason, payload) for reason, payload in rows]

    def close(self) -> None:
        """Close the file; everything appended is in it."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                if self._in_transaction():
                    self._db.execute("ROLLBACK")
                raise RoomStoreFailed(
                    f"{self.path.name}: {error}", hint="check disk space and access"
                ) from error

    def _in_transaction(self) -> bool:
        try:
            return self._db.in_transaction
        except sqlite3.ProgrammingError:
            return False

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.touch(mode=0o600)
            db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.OperationalError) as error:
            raise RoomStoreFailed(f"{self.path.name}: {error}", hint="check access to the home") from error
        try:
            _prepare(db)
        except (sqlite3.Error, _Damaged, RoomStoreFailed) as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError):
                raise RoomStoreFailed(f"{self.path.name}: {error}", hint="is it open elsewhere?") from error
            if isinstance(error, sqlite3.Error):
                raise _Damaged from error
            raise
        return db


class _Damaged(Exception):
    """The file is no database of ours any more."""


def _prepare(db: sqlite3.Connection) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise RoomStoreFailed(f"room.db has version {version}", hint="a newer gateway wrote it: upgrade")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    if version == 0:
        db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
    if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise _Damaged
    for table in ("log", "snapshot"):
        rows = db.execute(f"SELECT payload, sha256 FROM {table}")  # noqa: S608 two constants
        if any(_hash(payload) != sha256 for payload, sha256 in rows):
            raise _Damaged


def _set_aside(path: Path) -> Path:
    """Rename a damaged database (and its journals) to the first free ``.damaged-N``."""
    number = next(n for n in range(1, 10_000) if not path.with_name(f"{path.name}.damaged-{n}").exists())
    target = path.with_name(f"{path.name}.damaged-{number}")
    for suffix in ("-wal", "-shm"):
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(target.with_name(target.name + suffix))
    path.rename(target)
    return target


def _hash(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()
