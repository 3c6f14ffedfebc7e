"""The key files of a node: ``keys/`` (0700) with one file a key (0600), each on disk before it is used.

========== =============================================== ==================
file       holds                                           who has it
========== =============================================== ==================
node.key   Ed25519 seed of the node                        every node
root.key   Ed25519 seed of the mesh root                   the founding node
nonce.key  32 random bytes for the HMAC of nonces          every node
========== =============================================== ==================

A file is one line, ``gateway-mesh <name> v1 <43 characters of base64url>``, so that one key cannot be taken
for another. A shell: it reads and writes files; randomness is an argument. Errors: see ``auth.errors``.
"""

import os
import stat
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from auth.errors import KeyFileDamaged, KeyFileUnsafe
from auth.keys import SigningKey
from auth.limits import KEY_FILE_BYTES_MAX
from outbox import base64url
from outbox.errors import StorageFailed
from outbox.replacing import replace_file, sync_directory

Entropy = Callable[[int], bytes]
"""Gives that many random bytes of the operating system."""


class KeyName(StrEnum):
    """The keys, each with one use."""

    NODE = "node"
    ROOT = "root"
    NONCE = "nonce"


class Keyring:
    """The key directory of one home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def node_key(self, entropy: Entropy) -> SigningKey:
        """The node's key; made at the first call. Raises KeyFileUnsafe, KeyFileDamaged, StorageFailed."""
        return SigningKey(self._get(KeyName.NODE, entropy))

    def kept_node_key(self) -> SigningKey:
        """The key of a node that has signed something: a lost one is not made anew. Raises as node_key."""
        raw = self._read(KeyName.NODE)
        if raw is None:
            raise KeyFileDamaged(f"{self._path(KeyName.NODE)} is missing", hint="restore keys/ from a backup")
        return SigningKey(raw)

    def nonce_key(self, entropy: Entropy) -> bytes:
        """The 32 bytes that nonces are sealed with; made at the first call. Raises as node_key."""
        return self._get(KeyName.NONCE, entropy)

    def make_root_key(self, entropy: Entropy) -> SigningKey:
        """The mesh root key, for the founding node alone; made at the first call. Raises as node_key."""
        return SigningKey(self._get(KeyName.ROOT, entropy))

    def root_key(self) -> SigningKey | None:
        """The mesh root key, where this node holds it. Raises as node_key."""
        raw = self._read(KeyName.ROOT)
        return SigningKey(raw) if raw is not None else None

    def _get(self, name: KeyName, entropy: Entropy) -> bytes:
        raw = self._read(name)
        if raw is not None:
            return raw
        made = entropy(32)
        self._write(name, made)
        return made

    def _path(self, name: KeyName) -> Path:
        return self._directory / f"{name}.key"

    def _read(self, name: KeyName) -> bytes | None:
        path = self._path(name)
        try:
            _check_closed(self._directory.lstat(), self._directory, "700")
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                _check_closed(os.fstat(descriptor), path, "600")
                text = file.read(KEY_FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageFailed(
                f"cannot read {path}: {error.strerror}", hint="look at the disk, and at who owns the home"
            ) from None
        return _parse(text, name, path)

    def _write(self, name: KeyName, raw: bytes) -> None:
        path = self._path(name)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_closed(self._directory.lstat(), self._directory, "700")
            replace_file(path, f"gateway-mesh {name} v1 {base64url.encode(raw)}\n".encode())
            # A node that loses a key which already signed something is a stranger: the directory may be new.
            sync_directory(self._directory.parent)
        except OSError as error:
            raise StorageFailed(
                f"cannot write {path}: {error.strerror}", hint="check the disk's free space, and its owner"
            ) from None


def _parse(text: bytes, name: KeyName, path: Path) -> bytes:
    head = f"gateway-mesh {name} v1 ".encode()
    try:
        raw = base64url.decode(text.removeprefix(head).removesuffix(b"\n").decode("ascii"))
    except ValueError:
        raw = b""
    if not text.startswith(head) or len(raw) != 32:
        raise KeyFileDamaged(
            f"{path} does not hold a {name} key", hint="restore it from a backup; never edit it"
        )
    return raw


def _check_closed(status: os.stat_result, path: Path, mode: str) -> None:
    if stat.S_ISLNK(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise KeyFileUnsafe(
            f"{path} is open to others, a link, or another user's",
            hint=f"chmod {mode} {path}; if others could read it, make a new key",
        )
