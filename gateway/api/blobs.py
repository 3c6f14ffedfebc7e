"""Answers about blobs. Core."""

import msgspec

from outbox.blobref import BlobId
from outbox.records import Blob


class BlobAnswer(msgspec.Struct, frozen=True):
    """The blob is here."""

    sha256: BlobId
    bytes: int


class BlobRow(msgspec.Struct, frozen=True, rename="camel"):
    """One blob of this node."""

    sha256: BlobId
    bytes: int
    stored_at_ms: int
    """When it came, or was last asked to be kept."""


class BlobsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The blobs of this node, newest first."""

    blobs: list[BlobRow]
    bytes: int
    """Of all that are here, listed or not."""
    missing: list["MissingRow"]
    """Named by open turns or copies, and not here."""


class MissingRow(msgspec.Struct, frozen=True, rename="camel"):
    """A blob that is awaited."""

    sha256: BlobId
    bytes: int
    here: int
    """Bytes that have come."""
    source: str
    """The node whose event names it."""
    awaited: bool
    """A turn waits for it; else a copy names it."""


def blob_row(row: Blob) -> BlobRow:
    """A row of the journal as an answer."""
    return BlobRow(row.sha256, row.bytes, row.stored_at_ms)
