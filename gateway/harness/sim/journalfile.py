"""The journal of a simulated node on SQLite, beside its twin in memory: what one process left in the file is
what the next one reads.
"""

import sqlite3
from collections.abc import Callable, Set
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import cast

from gateway.harness.sim.comparing import Compared, Differs, compare_all
from gateway.harness.sim.disk import Disk
from gateway.harness.sim.findings import Promise
from outbox.database import Database
from outbox.errors import StorageFull
from outbox.journal import Journal
from outbox.reader import JournalReader
from outbox.records import Identity
from outbox.store import Store

_UNSYNCED = "PRAGMA synchronous = OFF"
"""Nobody pulls the plug of the machine that simulates."""


class JournalFile:
    """The file, and what a process has open on it."""

    def __init__(self, path: Path, differs: Differs) -> None:
        self.path = path
        self.differs = differs
        self.keeps = False
        """How it was before the last commit is kept."""
        self.journal: Journal | None = None
        self.reader: JournalReader | None = None
        self._before = path.with_suffix(".before")
        self._copies = count(1)

    def make(self, identity: Identity) -> None:
        """Make it, empty."""
        self.path.touch()
        Journal.over(self._database(lambda: False), identity).close()

    def open(self, full: Callable[[], bool]) -> tuple[Journal, JournalReader]:
        """For a new process, on a disk that is full at times."""
        self._before.unlink(missing_ok=True)
        self.journal = Journal.over(self._database(full), None)
        self.reader = JournalReader.open(self.path)
        return self.journal, self.reader

    def close(self) -> None:
        """The process has died."""
        for store in (self.reader, self.journal):
            if store is not None:
                store.close()
        self.journal = self.reader = None
        self.keeps = False

    def about_to_commit(self) -> None:
        """Keep how it is, if that may be wanted."""
        if self.keeps:
            _copy(self.path, self._before)

    def lose_last_commit(self) -> None:
        """It never reached the disk. Nobody has it open."""
        self._before.replace(self.path)

    def copied(self) -> "JournalFile":
        """All that is committed at this moment, in another file."""
        path = self.path.with_name(f"{self.path.stem}-{next(self._copies)}.db")
        _copy(self.path, path)
        return JournalFile(path, self.differs)

    def _database(self, full: Callable[[], bool]) -> Database:
        database = _SimDatabase.open(self.path, wal_bytes=0)
        database.full = full
        database.rows(_UNSYNCED)
        return database


class FiledDisk(Disk):
    """A disk with the file of a journal on it, and with its twin, which the judge reads."""

    def __init__(self, identity: Identity, file: JournalFile) -> None:
        super().__init__(identity)
        self._file = file

    def opened(self) -> tuple[Store, Store]:
        """A journal for a new process, and a reader beside it."""
        journal, reader = self._file.open(lambda: self.full)
        self.compare()
        differs = self._file.differs
        return cast("Store", _Written(self, journal, differs)), cast("Store", Compared(reader, self, differs))

    def closed(self) -> None:
        """The process has died."""
        super().closed()
        self._file.close()

    def compare(self) -> None:
        """The twin with what a process has open."""
        for store in (self._file.journal, self._file.reader):
            for difference in compare_all(store, self) if store is not None else ():
                self._file.differs(difference)

    def may_lose_a_commit(self) -> None:
        """The next death may be inside of one."""
        self._file.keeps = True

    def about_to_commit(self) -> None:
        """What is written now may be lost with its process."""
        self._file.about_to_commit()

    def lose_last_commit(self) -> None:
        """The machine died inside the last commit: it never reached the disk."""
        super().lose_last_commit()
        self._file.lose_last_commit()

    def _blank(self) -> "FiledDisk":
        return FiledDisk(self._identity, self._file.copied())


def disk_of(identity: Identity, folder: Path | None, find: Callable[[Promise, str], None]) -> Disk:
    """The disk of a new node: with a file, where there is a folder for it."""
    if folder is None:
        return Disk(identity)

    def differs(how: str) -> None:
        find(Promise.JOURNAL_IS_TRUE, f"{identity.node}: {how}")

    file = JournalFile(folder / f"{identity.node}.db", differs)
    file.make(identity)
    return FiledDisk(identity, file)


class _Written(Compared):
    """What a process writes through: a commit is one when it is in the file."""

    def __init__(self, disk: FiledDisk, journal: Journal, differs: Differs) -> None:
        super().__init__(journal, disk, differs)
        self._disk, self._writes = disk, journal

    @property
    def open_kinds(self) -> Set[str]:
        """As the journal remembers: some may be open no more, and none that is may be missing."""
        kinds = self._writes.open_kinds
        missing = {row.kind for row in self._disk.incidents(open_only=True)} - kinds
        if missing:
            self._differs(f"open_kinds: the journal does not know of {sorted(missing)}")
        return kinds

    @property
    def read_only(self) -> bool:
        """Of the journal, which has tried."""
        return self._writes.read_only

    @read_only.setter
    def read_only(self, read_only: bool) -> None:
        self._writes.read_only = read_only

    @property
    def only_asked(self) -> bool:
        """Of the journal."""
        return self._writes.only_asked

    def find_room(self) -> None:
        """In the file."""
        self._writes.find_room()

    def commit(self) -> None:
        """Raises StorageFull."""
        self._disk.about_to_commit()
        self._writes.commit()
        self._disk.keep()


class _SimDatabase(Database):
    """A connection to a disk that may be full."""

    full: Callable[[], bool]
    _before = 0

    def begin(self) -> None:
        """As ``Database``."""
        super().begin()
        self._before = self.connection.total_changes

    def commit(self) -> None:
        """Raises StorageFull when something was written, as what reads only needs no room."""
        if self.connection.total_changes != self._before and self.full():
            raise StorageFull("no space left on the simulated disk")
        super().commit()


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as whole, closing(sqlite3.connect(target)) as copy:
        copy.execute(_UNSYNCED)
        whole.backup(copy)
