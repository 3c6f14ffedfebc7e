"""Where a backup is put together: a directory beside its file, which goes with it, and is there once.

What a backup that was killed has left lies there too, and goes when the next one of that name begins.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.backup.errors import BackupFailed


@contextmanager
def staging_for(target: Path) -> Iterator[Path]:
    """An empty directory of 0700 on the disk of ``target``. Raises BackupFailed when another backup is being
    written to the same file, OSError."""
    made = target.absolute().with_name(f".{target.name}.partial")
    made.mkdir(mode=0o700, exist_ok=True)
    held = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _hold(held, target)
        try:
            _empty(made)
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
    finally:
        os.close(held)


def need_room(directory: Path, size: int) -> None:
    """Raises BackupFailed when a disk has less free, before anything is written; OSError."""
    free = shutil.disk_usage(directory).free
    if size > free:
        raise BackupFailed(
            f"{size} bytes are needed in {directory}, and {free} are free",
            hint="free some space, name another place, or leave the files out: --without-blobs",
        )


def _hold(directory: int, target: Path) -> None:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BackupFailed(
            f"another backup is being written to {target}", hint="wait for it, or name another file"
        ) from None


def _empty(directory: Path) -> None:
    for left in directory.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
