"""Make a backup while the gateway runs: one moment of each database, checked before the file gets its
name."""

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from io import BytesIO
from pathlib import Path

import msgspec

from auth.keyring import Keyring
from gateway.backup.blobs import pack_blobs
from gateway.backup.errors import BackupFailed
from gateway.backup.limits import PAGES_AT_ONCE
from gateway.backup.manifest import (
    DATABASES,
    NAME,
    PLAIN,
    SECRET,
    SECRET_DIRECTORIES,
    Backup,
    BlobList,
    Manifest,
    Member,
    may_hold,
)
from gateway.backup.progress import Moved, Progress
from gateway.backup.staging import need_room, staging_for
from gateway.home import Home
from outbox.database import Database
from outbox.errors import HomeLocked
from outbox.journal import Journal
from outbox.lock import HomeLock
from outbox.replacing import sync_directory


def make_backup(
    home: Home, target: Path, *, with_keys: bool, with_blobs: bool, now_ms: int, progress: Progress
) -> Backup:
    """Write a node into one file of 0600. Raises BackupFailed, HomeError, StorageFailed, BrokenChain.

    The journal is one moment of it, whatever is written meanwhile; the chain in the copy was verified.
    """
    home.check()
    home.need_journal()
    key = Keyring(home.keys).kept_node_key()
    with _failing(target), staging_for(target) as made:
        staged = made / "home"
        staged.mkdir(mode=0o700)
        databases = [home.root / name for name in DATABASES if (home.root / name).exists()]
        need_room(made, 2 * sum(path.stat().st_size for path in databases))
        with _quiet(home):
            for path in databases:
                _copy_database(path, staged / path.name, progress)
        journal = Journal.open(staged / DATABASES[0], wal_bytes=0)
        try:
            head = journal.verify(key.public.verify)
            identity, blobs = journal.identity(), journal.blobs() if with_blobs else []
        finally:
            journal.close()
        settle(staged)
        _copy_files(home.root, staged, with_keys=with_keys)
        files = {name: _member(staged / name) for name in _names(staged)}
        total = sum(member.bytes for member in files.values()) + sum(blob.bytes for blob in blobs)
        need_room(made, total)
        manifest = Manifest(
            mesh=identity.mesh,
            node=identity.node,
            epoch=head.epoch,
            seq=head.seq,
            made_at_ms=now_ms,
            with_keys=with_keys,
            with_blobs=with_blobs,
            files=files,
        )
        moved = Moved(total, progress)
        packed = BlobList()
        with _archive(made / target.name) as archive:
            _pack(archive, staged, manifest, moved)
            if with_blobs:
                packed = pack_blobs(archive, blobs, home, moved)
        (made / target.name).rename(target)
        sync_directory(target.absolute().parent)
    return Backup(manifest, packed)


@contextmanager
def _failing(target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error, tarfile.TarError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise BackupFailed(
            f"cannot write {target}: {why}", hint="check the directory and its space; nothing was left there"
        ) from None


@contextmanager
def _quiet(home: Home) -> Iterator[None]:
    """Keep a gateway from starting while nobody runs; beside one that runs its lock stays its own."""
    try:
        lock = HomeLock(home.lock)
    except HomeLocked:
        yield
        return
    with lock:
        yield


def _copy_database(source: Path, target: Path, progress: Progress) -> None:
    database = Database.open_read_only(source)
    copy = sqlite3.connect(target)
    try:
        database.rows("BEGIN")
        database.rows("SELECT count(*) FROM sqlite_schema")  # from here on one moment is read
        database.connection.backup(
            copy, pages=PAGES_AT_ONCE, progress=lambda _, left, pages: progress(pages - left, pages)
        )
    finally:
        copy.close()
        database.close()
    if sqlite_check(target) != "ok":
        raise BackupFailed(f"the copy of {source.name} is damaged", hint="check the disk of the home")


def sqlite_check(path: Path) -> str:
    """What SQLite says of a database file: ``ok``, or what is wrong."""
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        connection.close()


def settle(staged: Path) -> None:
    """One file a database: what opening them has left beside them goes back in. Raises sqlite3.Error."""
    for name in DATABASES:
        if (staged / name).exists():
            connection = sqlite3.connect(staged / name)
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.close()


def _copy_files(root: Path, staged: Path, *, with_keys: bool) -> None:
    for name in (*PLAIN, *(SECRET if with_keys else ())):
        if (root / name).is_file():
            shutil.copyfile(root / name, staged / name)
    for directory in SECRET_DIRECTORIES if with_keys else ():
        (staged / directory).mkdir(mode=0o700)
        for file in sorted((root / directory).iterdir()) if (root / directory).is_dir() else ():
            if may_hold(f"{directory}/{file.name}") and file.is_file() and not file.is_symlink():
                shutil.copyfile(file, staged / directory / file.name)


def _names(staged: Path) -> list[str]:
    return sorted(str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file())


def _member(path: Path) -> Member:
    with path.open("rb") as file:
        return Member(path.stat().st_size, file_digest(file, "sha256").hexdigest())


@contextmanager
def _archive(draft: Path) -> Iterator[tarfile.TarFile]:
    """A new one, on disk when it is left."""
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            yield archive
        file.flush()
        os.fsync(file.fileno())


def _pack(archive: tarfile.TarFile, staged: Path, manifest: Manifest, moved: Moved) -> None:
    _add(archive, NAME, msgspec.json.format(msgspec.json.encode(manifest)))
    for name, member in manifest.files.items():
        info = archive.gettarinfo(staged / name, name)
        info.mode, info.uid, info.gid, info.uname, info.gname = 0o600, 0, 0, "", ""
        with (staged / name).open("rb") as content:
            archive.addfile(info, content)
        moved.add(member.bytes)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o600
    archive.addfile(info, BytesIO(content))
