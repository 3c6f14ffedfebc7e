"""Blob files, read and written in threads: the loop never waits for a disk that has other things to do."""

import asyncio
from collections.abc import Callable
from typing import Self, TypeVar

from gateway.blobs.limits import UNSWEPT_S
from gateway.clock import Clock
from outbox.blobfiles import BlobFiles
from outbox.blobfiles import Draft as FileDraft
from outbox.blobref import BlobId

_Value = TypeVar("_Value")


class ThreadedBlobs:
    """Implements ``gateway.blobs.disk.BlobDisk`` over a directory."""

    def __init__(self, files: BlobFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock

    async def part(self, sha256: BlobId) -> "ThreadedDraft":
        """Go on with a blob; what has come of it is hashed again."""
        return await ThreadedDraft.opened(self._files, lambda: self._files.part(sha256))

    async def draft(self, word: str) -> "ThreadedDraft":
        """Begin one whose name is not known."""
        return await ThreadedDraft.opened(self._files, lambda: self._files.draft(word))

    async def digest(self, sha256: BlobId) -> str:
        """What a whole blob hashes to; "" of what is not here."""
        try:
            return await asyncio.to_thread(self._files.digest, sha256)
        except FileNotFoundError:
            return ""

    async def read(self, sha256: BlobId, offset: int, size: int) -> bytes:
        """So many bytes from there, or fewer at the end; none of what is not here."""
        return await asyncio.to_thread(self._files.read, sha256, offset, size)

    def size(self, sha256: BlobId) -> int | None:
        """Of a whole blob; None when it is not here."""
        return self._files.size(sha256)

    def partial_size(self, sha256: BlobId) -> int:
        """Bytes that have come of one that is not whole."""
        return self._files.partial_size(sha256)

    def drop(self, sha256: BlobId) -> None:
        """Its name goes at once; freeing a large file takes a while, and nobody waits for it."""
        aside = self._files.set_aside(sha256)
        if aside is not None:
            asyncio.get_running_loop().run_in_executor(None, lambda: aside.unlink(missing_ok=True))

    async def sweep(self, known: frozenset[str]) -> int:
        """Take away what no row knows and nobody has touched for a day."""
        before_s = self._clock.wall_ms() / 1000 - UNSWEPT_S
        return await asyncio.to_thread(self._files.sweep, set(known), before_s)


class ThreadedDraft:
    """One draft. One step at a time; a step whose caller has gone is finished before the file is closed."""

    def __init__(self, files: BlobFiles, file: FileDraft) -> None:
        self._files = files
        self._file = file
        self._step: asyncio.Future[object] | None = None

    @classmethod
    async def opened(cls, files: BlobFiles, make: Callable[[], FileDraft]) -> Self:
        """Open one in a thread."""
        return cls(files, await asyncio.to_thread(make))

    @property
    def offset(self) -> int:
        """Bytes that are here."""
        return self._file.offset

    async def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        await self._run(self._file.write, data)

    def digest(self) -> str:
        """What all of it hashes to."""
        return self._file.digest()

    async def sync(self) -> None:
        """Bring it to the disk."""
        await self._run(self._file.sync)

    async def publish(self, sha256: BlobId) -> None:
        """Give it its name, durably; it was synced."""
        await self._run(self._files.publish, self._file, sha256)

    async def discard(self) -> None:
        """Throw it away."""
        await self._run(self._file.discard)

    def close(self) -> None:
        """Let go of the file as soon as nothing is done with it."""
        if self._step is None or self._step.done():
            self._file.close()
        else:
            self._step.add_done_callback(self._close_late)

    async def _run(self, work: Callable[..., _Value], *values: object) -> _Value:
        """Do one step in a thread."""
        step = asyncio.get_running_loop().run_in_executor(None, work, *values)
        self._step = step  # type: ignore[assignment]  # its value is the caller's affair
        return await asyncio.shield(step)

    def _close_late(self, step: "asyncio.Future[object]") -> None:
        step.exception()  # nobody is left to hear of it
        self._file.close()
