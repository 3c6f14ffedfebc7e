"""Where the bytes of blobs are kept, as this gateway sees it: files in threads, or a simulated disk."""

from typing import Protocol

from outbox.blobref import BlobId


class Draft(Protocol):
    """A blob on its way in. Methods raise StorageFull, StorageFailed."""

    @property
    def offset(self) -> int:
        """Bytes that are here."""
        ...

    async def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        ...

    def digest(self) -> str:
        """What all of it hashes to."""
        ...

    async def sync(self) -> None:
        """Bring it to the disk."""
        ...

    async def publish(self, sha256: BlobId) -> None:
        """Give it its name, durably; it was synced."""
        ...

    async def discard(self) -> None:
        """Throw it away."""
        ...

    def close(self) -> None:
        """Let go of it; what came stays."""
        ...


class BlobDisk(Protocol):
    """One node's blobs. Methods raise StorageFull, StorageFailed."""

    async def part(self, sha256: BlobId) -> Draft:
        """Go on with a blob, from what has come of it."""
        ...

    async def draft(self, word: str) -> Draft:
        """Begin one whose name is not known."""
        ...

    async def digest(self, sha256: BlobId) -> str:
        """What a whole blob hashes to; one that is not here to nothing that is a name."""
        ...

    async def read(self, sha256: BlobId, offset: int, size: int) -> bytes:
        """So many bytes from there, or fewer at the end; none of what is not here."""
        ...

    def size(self, sha256: BlobId) -> int | None:
        """Of a whole blob; None when it is not here."""
        ...

    def partial_size(self, sha256: BlobId) -> int:
        """Bytes that have come of one that is not whole."""
        ...

    def drop(self, sha256: BlobId) -> None:
        """Take a whole blob away, at once; one that is gone is fine."""
        ...

    async def sweep(self, known: frozenset[str]) -> int:
        """Take away what no row knows and nobody has touched for long; returns how many files."""
        ...
