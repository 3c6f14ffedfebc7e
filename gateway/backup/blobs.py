"""Blobs in a backup: streamed into its archive and out again, each hashed on its way.

They are packed last, and the list of them behind them: so each is read once, and what did not hash to its
name is in the archive and not on the list. What is not on the list is not restored; the node knows from its
journal what is missing.
"""

import hashlib
import os
import tarfile
from io import BytesIO
from pathlib import Path
from typing import IO

import msgspec

from gateway.backup.errors import BackupFailed
from gateway.backup.limits import BLOB_LIST_BYTES_MAX, PIECE_BYTES
from gateway.backup.manifest import BLOBS, BLOBS_NAME, BlobList, check_blobs
from gateway.backup.progress import Moved
from gateway.home import Home
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId
from outbox.reader import JournalReader
from outbox.records import Blob


def pack_blobs(archive: tarfile.TarFile, rows: list[Blob], home: Home, moved: Moved) -> BlobList:
    """Add the blobs that a journal knew at the moment of the backup, and their list.

    Raises OSError, StorageFailed.
    """
    found = BlobList()
    for row in rows:
        if _pack(archive, home.blobs / row.sha256, row, moved):
            found.whole[row.sha256] = row.bytes
        elif _is_known(home.journal, row.sha256):  # what was let go of meanwhile is not missed
            found.damaged.append(row.sha256)
    raw = msgspec.json.encode(found)
    info = tarfile.TarInfo(BLOBS_NAME)
    info.size, info.mode = len(raw), 0o600
    archive.addfile(info, BytesIO(raw))
    return found


def _pack(archive: tarfile.TarFile, path: Path, row: Blob, moved: Moved) -> bool:
    """Whether a whole blob was added."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        if os.fstat(file.fileno()).st_size != row.bytes:
            return False
        info = tarfile.TarInfo(f"{BLOBS}/{row.sha256}")
        info.size, info.mode = row.bytes, 0o600
        content = _Hashing(file, moved)
        archive.addfile(info, content)
    return content.digest() == row.sha256


def _is_known(journal: Path, sha256: BlobId) -> bool:
    reader = JournalReader.open(journal)
    try:
        return reader.blob(sha256) is not None
    finally:
        reader.close()


def read_list(archive: tarfile.TarFile) -> BlobList:
    """Which blobs are in a backup. Raises BackupFailed, KeyError (it was cut short), tarfile.TarError."""
    info = archive.getmember(BLOBS_NAME)
    content = archive.extractfile(info) if info.size <= BLOB_LIST_BYTES_MAX else None
    if content is None:
        raise BackupFailed("the list of blobs is damaged", hint="use another backup")
    return check_blobs(content.read())


def unpack_blobs(archive: tarfile.TarFile, blobs: BlobList, target: Path, kept: Path, moved: Moved) -> None:
    """Write those that ``kept`` does not hold whole into ``target``. Raises BackupFailed, OSError."""
    target.mkdir(mode=0o700)
    here = BlobFiles(kept)
    for sha256, size in blobs.whole.items():
        if here.holds(sha256):
            moved.add(size)
            continue
        info = archive.getmember(f"{BLOBS}/{sha256}")
        content = archive.extractfile(info) if info.isreg() and info.size == size else None
        if content is None or _write(content, target / sha256, moved) != sha256:
            raise BackupFailed(
                f"blob {sha256} in the backup is damaged",
                hint="use another backup, or do without its files: --without-blobs",
            )


def _write(content: IO[bytes], target: Path, moved: Moved) -> str:
    """Copy it to the disk; returns what it hashes to."""
    source = _Hashing(content, moved)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := source.read(PIECE_BYTES):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return source.digest()


class _Hashing:
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes], moved: Moved) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._moved = moved

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        piece = self._file.read(size)
        self._hash.update(piece)
        self._moved.add(len(piece))
        return piece

    def digest(self) -> str:
        """Of all that was read."""
        return self._hash.hexdigest()
