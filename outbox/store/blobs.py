"""Which blobs are in the home, and who names them.

A row says that the file was whole and synced before. A blob is named while an own entry above the floor, an
entry of a copy, or a turn in the ledger names it; what nobody names may go.
"""

from collections.abc import Sequence
from typing import Protocol

from outbox.blobref import BlobId
from outbox.ids import Epoch, Seq
from outbox.records import Blob, MissingBlob, Naming


class BlobIndex(Protocol):
    """Rows by the hash of the content."""

    def blob(self, sha256: BlobId) -> Blob | None:
        """One blob, if it is here."""
        ...

    def blobs(self) -> list[Blob]:
        """All of them, newest first."""
        ...

    def blob_bytes(self) -> int:
        """What they take together."""
        ...

    def put_blob(self, row: Blob) -> None:
        """Insert or replace it."""
        ...

    def drop_blob(self, sha256: BlobId) -> None:
        """It is here no more; an absent one is fine."""
        ...

    def unnamed_blobs(self, stored_before_ms: int, limit: int) -> list[Blob]:
        """Blobs that nobody names and that were stored before a time, oldest first."""
        ...

    def naming(self, sha256: BlobId, limit: int) -> Sequence[Naming]:
        """Entries of the own outbox and of copies that name a blob: whoever may read one may read it."""
        ...

    def first_unfetched(self, epoch: Epoch, seq: Seq, now_ms: int) -> tuple[Epoch, Seq] | None:
        """The first own reply up to a place that names a blob and lives: nobody tells when it was fetched."""
        ...

    def missing_blobs(self, limit: int) -> list[MissingBlob]:
        """What is named and not here: first what open turns wait for, then what copies name; by name."""
        ...
