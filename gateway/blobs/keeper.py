"""How bytes become a blob of this node: whole, hashed, on disk with its name, and only then known.

Uploads of agents and transfers over links come through here. The order is what makes a crash harmless: file,
its sync, its name, the directory's sync, the row; and an event can name it only after that. A crash before
the row leaves a file that nobody knows: it is found by its name when the same bytes are offered, or swept.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

import structlog

from gateway.blobs.disk import BlobDisk, Draft
from gateway.blobs.errors import BlobBusy, BlobOffset, BlobWrong
from gateway.blobs.limits import SYNC_EVERY_BYTES
from gateway.crashpoint import CrashPoint, crashpoint
from gateway.engine.bloblife import BlobKept, BlobsFit, BlobsFull, KeepBlob
from gateway.errors import Denied
from gateway.runtime import Runtime
from outbox.blobref import BlobId
from outbox.errors import NotFound, StorageFull, TooLarge
from outbox.limits import BLOB_BYTES_MAX
from outbox.records import Blob, MissingBlob, Naming

log = structlog.get_logger(__name__)


class KnownBlobs(Protocol):
    """Which blobs are here, as far as it is committed."""

    def blob(self, sha256: BlobId) -> Blob | None:
        """One of them."""
        ...

    def blobs(self) -> list[Blob]:
        """All of them."""
        ...

    def blob_bytes(self) -> int:
        """What they take."""
        ...

    def naming(self, sha256: BlobId, limit: int) -> Sequence[Naming]:
        """Entries that name one."""
        ...

    def missing_blobs(self, limit: int) -> list[MissingBlob]:
        """What is named and not here."""
        ...


class BlobKeeper:
    """All blobs of one gateway."""

    def __init__(
        self, disk: BlobDisk, runtime: Runtime, index: KnownBlobs, bytes_max: int, *, refused_bytes: int = 0
    ) -> None:
        self.disk = disk
        self.index = index
        self._runtime = runtime
        self._bytes_max = bytes_max
        self._coming: dict[str, int] = {}
        """Blobs on their way in, by the name of their draft: what each may take."""
        self._refused_bytes = refused_bytes
        """Of the blob that found no room last; 0 when there is room for it, or nothing was refused."""
        self._cut_short: dict[BlobId, int] = {}
        """Bytes of what came in part and is not on its way now, since this process began; oldest first."""
        self._claims: Counter[BlobId] = Counter()
        """Files that have their name and no row yet."""

    async def have(self, sha256: BlobId) -> BlobKept | None:
        """The blob if it is here: then it stays for a while, even if nobody names it."""
        size = self.disk.size(sha256)
        if size is None:
            return None
        try:
            return await self._tell(sha256, size, written=False)
        except Denied as refused:
            if refused.wire_code != NotFound.code:
                raise
        with self._claimed(sha256):  # a file without a row: a crash came between
            if await self.disk.digest(sha256) != sha256:
                self.disk.drop(sha256)
                return None
            return await self._tell(sha256, size, written=True)

    @asynccontextmanager
    async def coming(self, sha256: BlobId, size: int, *, afresh: bool = False) -> AsyncIterator["Incoming"]:
        """Take a blob in whose name and size are known, from what has come of it.

        Raises BlobBusy, TooLarge, StorageFull, StorageFailed.
        """
        if size > BLOB_BYTES_MAX:
            raise TooLarge(f"a blob has at most {BLOB_BYTES_MAX} bytes")
        with self._room(sha256, size):
            await self._give_way()
            draft = await self.disk.part(sha256)
            if draft.offset and (afresh or draft.offset > size):
                await draft.discard()
                draft.close()
                draft = await self.disk.part(sha256)
            try:
                yield Incoming(self, draft, sha256, size)
            finally:
                draft.close()
                self._note_part(sha256)

    @asynccontextmanager
    async def unnamed(self, word: str) -> AsyncIterator["Incoming"]:
        """Take a blob in whose name is known at its end. Raises as ``coming``."""
        with self._room(word, 0):
            await self._give_way()
            draft = await self.disk.draft(word)
            incoming = Incoming(self, draft, None, None, word=word)
            try:
                yield incoming
            finally:
                if not incoming.kept:
                    await draft.discard()
                draft.close()

    def drop(self, sha256: BlobId) -> None:
        """Nobody names it: take its file away, unless the same blob has just come again."""
        if not self._claims[sha256]:
            self.disk.drop(sha256)
        self._note_room()

    async def sweep(self) -> None:
        """Take away files that no row knows."""
        known = frozenset(row.sha256 for row in self.index.blobs()) | frozenset(self._coming)
        gone = await self.disk.sweep(known)
        for sha256 in list(self._cut_short):
            self._note_part(sha256)
        if gone:
            log.info("blobs.swept", files=gone)

    # --- for what is coming

    def _note_part(self, sha256: BlobId) -> None:
        self._cut_short.pop(sha256, None)
        if left := self.disk.partial_size(sha256):
            self._cut_short[sha256] = left

    async def _give_way(self) -> None:
        """What was cut short, and may never go on, goes when it would take more room than there is."""
        for sha256 in list(self._cut_short):
            waiting = sum(size for other, size in self._cut_short.items() if other not in self._coming)
            if self.index.blob_bytes() + sum(self._coming.values()) + waiting <= self._bytes_max:
                return
            if sha256 not in self._coming:
                draft = await self.disk.part(sha256)
                await draft.discard()
                draft.close()
                self._note_part(sha256)

    def need_room(self, name: str, size: int) -> None:
        """Raises StorageFull when all that is here and coming is too much with so many bytes of this one."""
        others = sum(bytes_ for other, bytes_ in self._coming.items() if other != name)
        if self.index.blob_bytes() + others + size > self._bytes_max:
            self._note_full(size)
            raise StorageFull(
                f"blobs take up to {self._bytes_max} bytes here, and that is used",
                hint="raise blobs.bytes_max, or wait until retention lets go of some",
            )
        self._coming[name] = size
        self._note_room()

    def _note_full(self, size: int) -> None:
        if not self._refused_bytes:
            self._runtime.tell_now(BlobsFull(size, self._bytes_max))
        self._refused_bytes = size

    def _note_room(self) -> None:
        """What was refused may fit by now: somebody was let go of, or never came."""
        if self._refused_bytes:
            taken = self.index.blob_bytes() + sum(self._coming.values())
            if taken + self._refused_bytes <= self._bytes_max:
                self._refused_bytes = 0
                self._runtime.tell_now(BlobsFit())

    async def keep(self, draft: Draft, sha256: BlobId, size: int) -> BlobKept:
        """Make a draft that was hashed durable under its name, then known."""
        await draft.sync()
        crashpoint(CrashPoint.BLOB_AFTER_SYNC)
        with self._claimed(sha256):
            await draft.publish(sha256)
            crashpoint(CrashPoint.BLOB_AFTER_RENAME)
            return await self._tell(sha256, size, written=True)

    async def _tell(self, sha256: BlobId, size: int, *, written: bool) -> BlobKept:
        answer = await self._runtime.ask(KeepBlob(self._runtime.req(), sha256, size, written))
        assert isinstance(answer, BlobKept)
        return answer

    @contextmanager
    def _room(self, name: str, size: int) -> Iterator[None]:
        if name in self._coming:
            raise BlobBusy(f"blob {name} is on its way in already", hint="try again in a moment")
        self.need_room(name, size)
        try:
            yield
        finally:
            del self._coming[name]

    @contextmanager
    def _claimed(self, sha256: BlobId) -> Iterator[None]:
        self._claims[sha256] += 1
        try:
            yield
        finally:
            self._claims[sha256] -= 1
            self._claims += Counter()


class Incoming:
    """One blob on its way in; whoever brings the bytes brings them in order."""

    def __init__(
        self, keeper: BlobKeeper, draft: Draft, sha256: BlobId | None, size: int | None, *, word: str = ""
    ) -> None:
        self.kept: BlobKept | None = None
        self._keeper = keeper
        self._draft = draft
        self._sha256 = sha256
        self._size = size
        self._word = word
        self._unsynced = 0

    @property
    def offset(self) -> int:
        """Bytes that are here."""
        return self._draft.offset

    @property
    def whole(self) -> bool:
        """Whether all bytes of a blob of known size are here."""
        return self.offset == self._size

    async def write(self, data: bytes) -> None:
        """Add bytes. Raises TooLarge beyond the size, StorageFull (nothing is kept then), StorageFailed."""
        size = self.offset + len(data)
        if size > (BLOB_BYTES_MAX if self._size is None else self._size):
            raise TooLarge(f"more bytes came than the blob has ({self._size or BLOB_BYTES_MAX})")
        if self._size is None:
            self._keeper.need_room(self._word, size)
        try:
            await self._draft.write(data)
        except StorageFull:
            await self._draft.discard()
            raise
        self._unsynced += len(data)
        if self._unsynced >= SYNC_EVERY_BYTES:
            await self._draft.sync()
            self._unsynced = 0

    async def keep(self) -> BlobKept:
        """It is whole: check its hash and keep it. Raises BlobWrong, and what a tick may refuse with."""
        name = BlobId(self._draft.digest())
        if self._sha256 not in {None, name}:
            await self._draft.discard()
            raise BlobWrong(f"the bytes hash to {name}, not to {self._sha256}", hint="send them again")
        self.kept = await self._keeper.keep(self._draft, name, self.offset)
        return self.kept

    def need_offset(self, offset: int) -> None:
        """Raises BlobOffset unless the next bytes are those from there."""
        if offset != self.offset:
            raise BlobOffset(self.offset)
