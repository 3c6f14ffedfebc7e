"""What is in a backup: the first member of its tar file, by which all others are checked.

========  =======  ==================================================================================
version   since
========  =======  ==================================================================================
1         2026-11  databases as SQLite files, everything else as it lies in the home
2         2026-11  ``withBlobs``: then blobs follow under their names, and last ``blobs.json``, the list
                   of those that were whole. Version 1 is still read.
========  =======  ==================================================================================
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from gateway.backup.errors import BackupFailed
from outbox.blobref import BlobId, blob_id
from outbox.errors import InvalidId
from outbox.ids import Epoch, MeshId, NodeId, Seq

VERSION = 2
_READ = (1, VERSION)
NAME = "manifest.json"
BLOBS = "blobs"
BLOBS_NAME = "blobs.json"
DATABASES = ("journal.db", "room.db")
PLAIN = ("gateway.toml", "seed.jwt", "seed.record", "issuer.json")
"""What a home may hold besides, without a secret."""

SECRET = ("admin.token",)
SECRET_DIRECTORIES = ("keys", "agents")
_SECRET_SUFFIXES = {"keys": "", "agents": ".token"}


class Member(msgspec.Struct, frozen=True):
    """One file."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Whose backup it is, of when, and what it holds."""

    version: int = VERSION
    mesh: MeshId
    node: NodeId
    epoch: Epoch
    seq: Seq
    """The last event that is in it."""
    made_at_ms: int
    with_keys: bool
    with_blobs: bool = False
    files: dict[str, Member]


class BlobList(msgspec.Struct, frozen=True, kw_only=True):
    """The blobs of a backup."""

    whole: dict[BlobId, Annotated[int, msgspec.Meta(ge=0)]] = msgspec.field(default_factory=dict)
    """Those that are in it, and their bytes."""
    damaged: list[BlobId] = msgspec.field(default_factory=list)
    """Those that the node had no whole file of."""

    @property
    def bytes(self) -> int:
        """What they take together."""
        return sum(self.whole.values())


class Backup(msgspec.Struct, frozen=True):
    """One backup, as it was made or put back."""

    manifest: Manifest
    blobs: BlobList


class _Versioned(msgspec.Struct, frozen=True):
    """What every version says first."""

    version: int


def read_manifest(raw: bytes) -> Manifest:
    """Raises BackupFailed."""
    try:
        version = msgspec.json.decode(raw, type=_Versioned).version
        if version not in _READ:
            raise BackupFailed(
                f"this is a backup of version {version}, and this gateway reads up to version {VERSION}",
                hint="restore it with the gateway that made it, or a later one",
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"this is no backup of a node: {error}"
        raise BackupFailed(what, hint="name a file that gateway backup made") from None
    check_names(manifest.files)
    return manifest


def check_blobs(raw: bytes) -> BlobList:
    """Read the list of blobs. Raises BackupFailed."""
    try:
        found = msgspec.json.decode(raw, type=BlobList)
        for sha256 in found.whole:
            blob_id(sha256)
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidId) as error:
        raise BackupFailed(f"the list of blobs is damaged: {error}", hint="use another backup") from None
    return found


def check_names(files: Mapping[str, Member]) -> None:
    """Raises BackupFailed for a file that has no place in a home, and when the journal is missing."""
    for name in files:
        if not may_hold(name):
            raise BackupFailed(f"{name[:80]!r} has no place in a home", hint="do not trust this file")
    if DATABASES[0] not in files:
        raise BackupFailed("the backup holds no journal", hint="make another one")


def may_hold(name: str) -> bool:
    """Whether a file of this name belongs into a backup."""
    if name in (*DATABASES, *PLAIN, *SECRET):
        return True
    directory, slash, file = name.partition("/")
    inside = (
        directory in SECRET_DIRECTORIES and slash and file and not file.startswith(".") and "/" not in file
    )
    return bool(inside) and file.endswith(_SECRET_SUFFIXES[directory])
