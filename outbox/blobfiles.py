"""Blobs as files: one directory, one file a blob under its hash, drafts beside them until they are whole.

::

    blobs/            0700
        <sha256>      0600  whole; on disk with its name before anything says that it is here
        <sha256>.part       what has come of it: a transfer that was cut short goes on there
        <word>.draft        of an upload whose hash is known at its end

A draft is hashed as it grows; one that is gone on with is read again first.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from outbox.blobref import BlobId, blob_id
from outbox.errors import InvalidId, StorageFailed, StorageFull, WorldError
from outbox.limits import BLOB_PIECE_BYTES
from outbox.replacing import sync_directory

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PART, DRAFT, GONE = ".part", ".draft", ".gone"


class BlobFiles:
    """The directory. All methods block; all raise StorageFull or StorageFailed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with _told(root):
            root.mkdir(mode=0o700, exist_ok=True)

    def path(self, sha256: BlobId) -> Path:
        """Where a whole blob is."""
        return self.root / blob_id(sha256)

    def size(self, sha256: BlobId) -> int | None:
        """Bytes of a whole blob; None when it is not here."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            return None

    def partial_size(self, sha256: BlobId) -> int:
        """Bytes that have come of one that is not whole."""
        try:
            return self.root.joinpath(f"{sha256}{PART}").stat().st_size
        except FileNotFoundError:
            return 0

    def part(self, sha256: BlobId) -> "Draft":
        """Go on with a blob whose name is known, from what has come of it."""
        return Draft(self.root / f"{blob_id(sha256)}{PART}")

    def draft(self, word: str) -> "Draft":
        """Begin one whose name is not known."""
        self.root.joinpath(f"{word}{DRAFT}").unlink(missing_ok=True)
        return Draft(self.root / f"{word}{DRAFT}")

    def read(self, sha256: BlobId, offset: int, size: int) -> bytes:
        """So many bytes from there, or fewer at the end; none when it is not here."""
        try:
            descriptor = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            with _told(self.root):
                return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)

    def publish(self, draft: "Draft", sha256: BlobId) -> None:
        """Give a draft that is synced its name, and make the name durable."""
        with _told(self.root):
            draft.path.rename(self.path(sha256))
            sync_directory(self.root)

    def drop(self, sha256: BlobId) -> None:
        """Take a blob away; one that is gone is fine."""
        with _told(self.root):
            self.path(sha256).unlink(missing_ok=True)

    def set_aside(self, sha256: BlobId) -> Path | None:
        """Take a blob's name away and leave the file to be removed; None when there is none."""
        aside = self.root / f"{sha256}{GONE}"
        try:
            with _told(self.root):
                self.path(sha256).rename(aside)
        except FileNotFoundError:
            return None
        return aside

    def digest(self, sha256: BlobId) -> str:
        """What the file of a blob hashes to."""
        with _told(self.root), self.path(sha256).open("rb") as file:
            return _hash(file.fileno()).hexdigest()

    def holds(self, sha256: BlobId) -> bool:
        """Whether the file of a blob is here and hashes to its name."""
        try:
            return self.digest(sha256) == sha256
        except FileNotFoundError:
            return False

    def entries(self) -> Iterator[tuple[str, float]]:
        """Name and time of the last change (seconds since 1970) of each file."""
        with _told(self.root), os.scandir(self.root) as found:
            for entry in found:
                yield entry.name, entry.stat().st_mtime

    def sweep(self, known: set[str], before_s: float) -> int:
        """Take away what nobody knows and nobody has touched since; returns how many files."""
        gone = [name for name, changed_s in self.entries() if name not in known and changed_s < before_s]
        for name in gone:
            self.root.joinpath(name).unlink(missing_ok=True)
        return len(gone)


class Draft:
    """A blob on its way in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _told(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._hash = _hash(self._file)
            self.offset = os.lseek(self._file, 0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        """Add bytes at the end; after an error what was there before is there still."""
        with _told(self.path):
            try:
                _write_all(self._file, data)
            except OSError:
                os.ftruncate(self._file, self.offset)
                os.lseek(self._file, self.offset, os.SEEK_SET)
                raise
        self._hash.update(data)
        self.offset += len(data)

    def digest(self) -> str:
        """The hash of all of it."""
        return self._hash.hexdigest()

    def sync(self) -> None:
        """Bring it to the disk."""
        with _told(self.path):
            os.fsync(self._file)

    def discard(self) -> None:
        """Throw it away."""
        with _told(self.path):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file; what came stays, to be gone on with."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def is_blob(name: str) -> bool:
    """Whether a file of the directory is a whole blob."""
    try:
        blob_id(name)
    except InvalidId:
        return False
    return True


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


def _hash(descriptor: int) -> _Hash:
    found = hashlib.sha256()
    offset = 0
    while piece := os.pread(descriptor, BLOB_PIECE_BYTES, offset):
        found.update(piece)
        offset += len(piece)
    return found


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of the file system as those of the mesh."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise told(error, path) from None


def told(error: OSError, path: Path) -> WorldError:
    """The error of the mesh for one of the file system."""
    if error.errno in _FULL:
        return StorageFull(f"no space left for blobs in {path}", hint="free some space; nothing was kept")
    return StorageFailed(f"{path}: {error.strerror}", hint="look at the disk and at who owns the home")
