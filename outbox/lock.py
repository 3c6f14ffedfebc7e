"""One process a home: an advisory lock that the kernel drops when the process dies, however it dies."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from outbox.errors import HomeLocked, StorageFailed
from outbox.limits import LOCK_LOOK_EVERY_S, LOCK_WAIT_S


class HomeLock:
    """The lock file of a home, held from construction to ``close`` (or to the end of the process).

    A process that shares the open file (``fileno``) shares the lock: the home is free when neither is there.
    Whose holder has died is waited for, for a moment: such a process may be on its way out.
    Raises HomeLocked when another process, or another lock of this one, holds it; StorageFailed when its file
    cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(
                f"cannot open {path}: {error.strerror}",
                hint="may this user write there, and is there room on that disk?",
            ) from None
        until_s = time.monotonic() + LOCK_WAIT_S
        while not self._take():
            holder = os.pread(self._file, 20, 0).decode(errors="replace").strip() or "unknown"
            if not _has_died(holder) or time.monotonic() > until_s:
                os.close(self._file)
                raise HomeLocked(
                    f"{path.parent} is in use by process {holder}",
                    hint="stop the other gateway of this home first",
                )
            time.sleep(LOCK_LOOK_EVERY_S)
        with suppress(OSError):  # who holds it is for people to know; the lock itself needs no room
            size = os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
            os.ftruncate(self._file, size)

    def fileno(self) -> int:
        """The open file, for a process that shall hold the lock too."""
        return self._file

    def _take(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Let the home go; the file stays, since deleting it would let two processes lock two files."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _has_died(process: str) -> bool:
    """Whether there is no such process; False for whatever is no number."""
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OverflowError, PermissionError):
        return False
    return False
