"""Put a backup back: checked as a whole before anything of the home changes, the journal last.

What is restored is older than what this node has said. So a note goes in first by which the next start begins
a new epoch and asks the others what they remember; a journal without that note is never there."""

import errno
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path

from auth.keyring import Keyring
from gateway.backup.blobs import read_list, unpack_blobs
from gateway.backup.errors import BackupFailed
from gateway.backup.limits import MANIFEST_BYTES_MAX
from gateway.backup.making import settle, sqlite_check
from gateway.backup.manifest import BLOBS, DATABASES, NAME, Backup, BlobList, Manifest, read_manifest
from gateway.backup.progress import Moved, Progress
from gateway.backup.staging import need_room
from gateway.config import load
from gateway.engine.own_stream import Reason
from gateway.epochmark import EpochMark, Mark
from gateway.errors import HomeError
from gateway.home import Home, private_directory
from outbox.database import Database
from outbox.errors import PeerError, StorageFailed
from outbox.journal import Journal
from outbox.lock import HomeLock
from outbox.reader import read_identity
from outbox.replacing import sync_directory

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
_NAME_ANOTHER = "name a file that gateway backup made"
_BESIDE = ("", "-wal", "-shm", "-journal")


def restore(
    home: Home,
    source: Path,
    *,
    force: bool,
    ask: bool,
    with_blobs: bool,
    environ: Mapping[str, str],
    now_ms: int,
    progress: Progress,
) -> Backup:
    """Make a home of a backup; what was there is set aside with ``force``, but for blobs, which add up.

    ``ask`` waits for peers afterwards; ``environ`` may hold settings, as at a start.
    Raises BackupFailed, HomeError (there is a node already, or the keys are missing), HomeLocked.
    """
    home.create()
    with HomeLock(home.lock), _failing(home), _staging(home) as staged:
        if not force and (there := _node_of(home)) is not None:
            raise HomeError(
                f"{home.root} is the home of {there} already",
                hint="restore into another one, or set this one's databases aside with --force",
            )
        made = _unpack(source, staged, home, environ if with_blobs else None, progress)
        manifest = made.manifest
        _check_keys(staged, home, manifest)
        _check_databases(staged, home, manifest)
        EpochMark(home.epoch_mark).put(Mark(Reason.RESTORE, ask))
        _set_aside(home, now_ms)
        _put_blobs(staged, home)
        _put_in_place(staged, home, manifest)
    return made


@contextmanager
def _failing(home: Home) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupFailed(
            f"cannot write into {home.root}: {error.strerror or error}",
            hint="free some space or mend the disk, and restore again: no half of a node runs meanwhile",
        ) from None


@contextmanager
def _staging(home: Home) -> Iterator[Path]:
    """A directory in the home, whose lock is held; what a restore that was killed has left goes first."""
    staged = home.root / ".restoring"
    if staged.exists():
        shutil.rmtree(staged)
    staged.mkdir(mode=0o700)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _node_of(home: Home) -> str | None:
    """Whose home it is; None: nobody's. A journal that cannot be read is somebody's."""
    try:
        if not Journal.made(home.journal):
            return None
        database = Database.open_read_only(home.journal)
        try:
            return read_identity(database).node
        finally:
            database.close()
    except StorageFailed:
        return "some node"


def _unpack(
    source: Path, staged: Path, home: Home, environ: Mapping[str, str] | None, progress: Progress
) -> Backup:
    """All files, and the blobs unless ``environ`` is None."""
    with _reading(source), source.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
        manifest = _manifest(archive)
        blobs = read_list(archive) if manifest.with_blobs and environ is not None else BlobList()
        total = sum(member.bytes for member in manifest.files.values()) + blobs.bytes
        moved = Moved(total, progress)
        need_room(staged, total - _bytes_here(home, blobs))
        for name, expected in manifest.files.items():
            _extract(archive, name, staged / name, expected.bytes)
            with (staged / name).open("rb") as content:
                if file_digest(content, "sha256").hexdigest() != expected.sha256:
                    raise BackupFailed(f"{name} in {source} is damaged", hint="use another backup")
            moved.add(expected.bytes)
        if environ is not None:
            _check_quota(staged if manifest.files.get(home.config.name) else home.root, environ, blobs)
            unpack_blobs(archive, blobs, staged / BLOBS, home.blobs, moved)
    return Backup(manifest, blobs)


def _bytes_here(home: Home, blobs: BlobList) -> int:
    """What blobs take that need not be unpacked."""
    return sum(size for name, size in blobs.whole.items() if (home.blobs / name).exists())


def _check_quota(settings: Path, environ: Mapping[str, str], blobs: BlobList) -> None:
    """Raises BackupFailed when the node's own settings would have refused so many; ConfigError."""
    allowed = load(settings / "gateway.toml", environ, {}).config.blobs.bytes_max
    if blobs.bytes > allowed:
        raise BackupFailed(
            f"the blobs of the backup take {blobs.bytes} bytes, and blobs.bytes_max is {allowed}",
            hint="set GATEWAY_BLOBS_BYTES_MAX higher, or leave them out: --without-blobs",
        )


@contextmanager
def _reading(source: Path) -> Iterator[None]:
    """A disk that is full says so by its number, and is not the archive's fault."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        raise BackupFailed(f"cannot read {source}: {error}", hint=_NAME_ANOTHER) from None
    except (tarfile.TarError, KeyError) as error:
        raise BackupFailed(f"cannot read {source}: {error}", hint=_NAME_ANOTHER) from None


def _manifest(archive: tarfile.TarFile) -> Manifest:
    first = archive.next()
    content = archive.extractfile(first) if first is not None and first.name == NAME else None
    if first is None or content is None or first.size > MANIFEST_BYTES_MAX:
        raise BackupFailed("this is no backup of a node", hint=_NAME_ANOTHER)
    return read_manifest(content.read())


def _extract(archive: tarfile.TarFile, name: str, target: Path, size: int) -> None:
    """By the manifest's names alone: what else the archive holds, and how it is named, does not matter."""
    info = archive.getmember(name)
    content = archive.extractfile(info) if info.isreg() and info.size == size else None
    if content is None:
        raise BackupFailed(f"{name} is not the file that the manifest names", hint="use another backup")
    target.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(content, file)
        file.flush()
        os.fsync(file.fileno())


def _check_keys(staged: Path, home: Home, manifest: Manifest) -> None:
    """The keys of another node are never replaced: without them it could not come back."""
    if not manifest.with_keys:
        if not (home.keys / "node.key").exists():
            raise HomeError(
                f"the backup holds no keys of {manifest.node}, and {home.keys} holds none either",
                hint=f"put your copy of that node's keys/ into {home.root}, or use a backup made --with-keys",
            )
        return
    (staged / "keys").chmod(0o700)
    comes = Keyring(staged / "keys").kept_node_key().public
    if (home.keys / "node.key").exists() and Keyring(home.keys).kept_node_key().public != comes:
        raise HomeError(
            f"{home.keys} holds the keys of another node than {manifest.node}",
            hint="restore into another home: gateway --home DIR restore FILE",
        )


def _check_databases(staged: Path, home: Home, manifest: Manifest) -> None:
    for name in DATABASES:
        if (staged / name).exists() and sqlite_check(staged / name) != "ok":
            raise BackupFailed(f"{name} in the backup is damaged", hint="use another backup")
    keys = staged / "keys" if manifest.with_keys else home.keys
    key = Keyring(keys).kept_node_key()
    journal = Journal.open(staged / DATABASES[0], wal_bytes=0)
    try:
        head, whose = journal.verify(key.public.verify), journal.identity()
    except PeerError as error:
        raise BackupFailed(
            f"the journal is not by the key in {keys}: {error}",
            hint="put this node's own keys/ into the home",
        ) from None
    finally:
        journal.close()
    said = (manifest.mesh, manifest.node, manifest.epoch, manifest.seq)
    if (whose.mesh, whose.node, head.epoch, head.seq) != said:
        raise BackupFailed("the manifest is not of this journal", hint="do not trust this file")
    settle(staged)


def _set_aside(home: Home, now_ms: int) -> None:
    """What was there is kept, under a name that says since when."""
    there = [home.root / f"{name}{end}" for name in DATABASES for end in _BESIDE]
    there = [path for path in there if path.exists()]
    if there:
        aside = home.root / f"before-restore-{now_ms}"
        aside.mkdir(mode=0o700)
        for path in there:
            path.rename(aside / path.name)
        sync_directory(aside)


def _put_blobs(staged: Path, home: Home) -> None:
    """Before the journal that knows them; blobs of a restore that is cut short here are swept after a day."""
    if (staged / BLOBS).exists():
        private_directory(home.blobs)
        for path in sorted((staged / BLOBS).iterdir()):
            path.rename(home.blobs / path.name)
        sync_directory(home.blobs)


def _put_in_place(staged: Path, home: Home, manifest: Manifest) -> None:
    for name in sorted(manifest.files, key=lambda name: (name == DATABASES[0], name)):
        target = home.root / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        (staged / name).rename(target)
        sync_directory(target.parent)
