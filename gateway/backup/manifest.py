"""What is in a backup: the first member of its tar file, by which all others are checked.

``version`` 1 since 2026-11: databases as SQLite files, everything else as it lies in the home.
"""

from collections.abc import Mapping

import msgspec

from gateway.backup.errors import BackupFailed
from outbox.ids import Epoch, MeshId, NodeId, Seq

VERSION = 1
NAME = "manifest.json"
DATABASES = ("journal.db", "room.db")
PLAIN = ("gateway.toml", "seed.jwt", "seed.record", "issuer.json")
"""What a home may hold besides, without a secret. Its blobs are not in a backup yet: a restored node fetches
again what open turns wait for, and cannot serve what its own events name."""

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
    files: dict[str, Member]


class _Versioned(msgspec.Struct, frozen=True):
    """What every version says first."""

    version: int


def read_manifest(raw: bytes) -> Manifest:
    """Raises BackupFailed."""
    try:
        version = msgspec.json.decode(raw, type=_Versioned).version
        if version != VERSION:
            raise BackupFailed(
                f"this is a backup of version {version}, and this gateway reads version {VERSION}",
                hint="restore it with the gateway that made it, or a later one",
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"this is no backup of a node: {error}"
        raise BackupFailed(what, hint="name a file that gateway backup made") from None
    check_names(manifest.files)
    return manifest


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
