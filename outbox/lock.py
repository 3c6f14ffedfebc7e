"""One process a home: an advisory lock that the kernel drops when the process dies, however it dies."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from outbox.errors import HomeLocked


class HomeLock:
    """The lock file of a home, held from construction to ``close`` (or to the end of the process).

    Raises HomeLocked when another process, or another lock of this one, holds it.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise HomeLocked(
                f"{path.parent} is in use by process {holder}",
                hint="stop the other gateway of this home first",
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

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
