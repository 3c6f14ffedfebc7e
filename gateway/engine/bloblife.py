"""What can happen to blobs, and what follows from it: inputs and effects of the engine."""

import msgspec

from outbox.blobref import BlobId


class KeepBlob(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A blob is whole and on disk under its name, or is to be kept for longer. Answer: BlobKept."""

    req: int
    sha256: BlobId
    bytes: int
    written: bool
    """Its file was just written; else it is only asked for, and may be gone."""


class BlobLost(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Whoever could have a blob says that it will not come: turns that wait for it fail."""

    sha256: BlobId
    why: str


class BlobsFull(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """A blob was refused because those that are here take all that they may."""

    refused_bytes: int
    bytes_max: int


class BlobsFit(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """There is room again for what was refused."""


class BlobKept(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """The blob is here, and stays for a while even if nobody names it."""

    req: int
    sha256: BlobId
    bytes: int


class BlobsMissing(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """An event that was read names a blob that is not here: fetch it, with all that are missing."""


class BlobDropped(msgspec.Struct, frozen=True, tag=True, tag_field="t"):
    """Nobody names the blob: its file may go."""

    sha256: BlobId
