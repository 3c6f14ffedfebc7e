"""A small disk under one home, that can be filled to the last byte: a tmpfs, so it needs Linux and root."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

from gateway.fleet.errors import FleetFailed
from gateway.harness.real.limits import DISK_CHUNK_BYTES, DISK_MIB


class SmallDisk:
    """Mounted where the home will be; its content is copied out at the end, if it is to be kept."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.ballast = home / ".ballast"

    def mount(self) -> None:
        """Raises FleetFailed."""
        self._home.mkdir(mode=0o700, parents=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", str(self._home))

    def fill(self) -> None:
        """Leave no byte free.

        The write-ahead log is emptied first: it was grown ahead, and a full disk that nobody notices is none.
        """
        journal = self._home / "journal.db"
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(journal)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        handle = os.open(self.ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (DISK_CHUNK_BYTES, 512):
                with contextlib.suppress(OSError):
                    while os.write(handle, bytes(size)):
                        pass
        finally:
            os.close(handle)

    def free(self) -> None:
        """Give the space back."""
        self.ballast.unlink(missing_ok=True)

    def release(self, *, keep: bool) -> None:
        """Unmount it; what was on it stays at the same path if it is to be kept. Raises FleetFailed."""
        aside = self._home.with_name(f".{self._home.name}.kept")
        if keep:
            shutil.copytree(self._home, aside)
        _run("umount", "-l", str(self._home))
        if keep:
            self._home.rmdir()
            aside.rename(self._home)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, timeout=30, check=False)  # noqa: S603 - no shell
    if done.returncode != 0:
        raise FleetFailed(f"`{' '.join(command)}` failed", hint=done.stderr.decode(errors="replace")[:300])
