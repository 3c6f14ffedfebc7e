"""The blobs of one simulated node: bytes in memory, and what a crash leaves of them.

What was not synced is gone with the process, and so is a name whose directory was not synced; a name whose
bytes were not leads to nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256 as hash_of

from outbox.blobref import BlobId
from outbox.errors import StorageFull

_STEP_S = 0.002
"""What a step takes: a process may die in it."""


@dataclass(slots=True)
class SimFile:
    """What was written, and how much of it is on the disk."""

    content: bytes = b""
    synced: int = 0


class SimBlobs:
    """Implements ``gateway.blobs.disk.BlobDisk``; survives the processes that use it."""

    def __init__(self, full: Callable[[], bool]) -> None:
        self._full = full
        self.files: dict[BlobId, SimFile] = {}
        self._parts: dict[str, SimFile] = {}
        self._drafts: dict[str, SimFile] = {}

    def crash(self) -> None:
        """The process has died: what was not synced is gone."""
        self._drafts.clear()
        for file in (*self.files.values(), *self._parts.values()):
            file.content = file.content[: file.synced]

    def holds(self, sha256: BlobId) -> bool:
        """Whether a blob is here and hashes to its name."""
        file = self.files.get(sha256)
        return file is not None and hash_of(file.content).hexdigest() == sha256

    async def part(self, sha256: BlobId) -> "SimDraft":
        """Go on with a blob, from what has come of it."""
        return SimDraft(self, self._parts, sha256)

    async def draft(self, word: str) -> "SimDraft":
        """Begin one whose name is not known."""
        self._drafts.pop(word, None)
        return SimDraft(self, self._drafts, word)

    async def digest(self, sha256: BlobId) -> str:
        """What a whole blob hashes to."""
        file = self.files.get(sha256)
        return "" if file is None else hash_of(file.content).hexdigest()

    async def read(self, sha256: BlobId, offset: int, size: int) -> bytes:
        """So many bytes from there."""
        file = self.files.get(sha256)
        return b"" if file is None else file.content[offset : offset + size]

    def size(self, sha256: BlobId) -> int | None:
        """Of a whole blob."""
        file = self.files.get(sha256)
        return None if file is None else len(file.content)

    def partial_size(self, sha256: BlobId) -> int:
        """Bytes that have come of one that is not whole."""
        file = self._parts.get(sha256)
        return 0 if file is None else len(file.content)

    def drop(self, sha256: BlobId) -> None:
        """Take a whole blob away."""
        self.files.pop(sha256, None)

    async def sweep(self, known: frozenset[str]) -> int:
        """No simulated world is old enough for it."""
        assert known is not None
        return 0

    def need_room(self) -> None:
        """Raises StorageFull."""
        if self._full():
            raise StorageFull("no space left on the simulated disk")


class SimDraft:
    """A blob on its way in."""

    def __init__(self, disk: SimBlobs, place: dict[str, SimFile], name: str) -> None:
        self._disk, self._place, self._name = disk, place, name
        self._file = place.setdefault(name, SimFile())

    @property
    def offset(self) -> int:
        """Bytes that are here."""
        return len(self._file.content)

    async def write(self, data: bytes) -> None:
        """Add bytes at the end. Raises StorageFull."""
        await asyncio.sleep(_STEP_S)
        self._disk.need_room()
        self._file.content += data

    def digest(self) -> str:
        """What all of it hashes to."""
        return hash_of(self._file.content).hexdigest()

    async def sync(self) -> None:
        """Bring it to the disk."""
        await asyncio.sleep(_STEP_S)
        self._file.synced = len(self._file.content)

    async def discard(self) -> None:
        """Throw it away."""
        self._place.pop(self._name, None)

    def close(self) -> None:
        """Nothing is held open."""

    async def publish(self, sha256: BlobId) -> None:
        """Give it its name, durably."""
        await asyncio.sleep(_STEP_S)
        self._disk.files[sha256] = self._place.pop(self._name)
