"""The log on disk: whole lines, rotated; what a full disk refuses waits in memory and is written later.

A line is written in one step or not at all: what a full disk took of it is cut off again. Each later line
tries what waits first, so the log comes back by itself, in order. What waits is bounded; how many lines were
let go of stands in the log where they would have been.
"""

import logging
import os
from collections import deque
from pathlib import Path

_DROPPED = "%d lines were dropped here: the disk was full for too long"


class LogFile(logging.Handler):
    """Appends to ``path``; at ``bytes_max`` it becomes ``path.1``, the oldest of ``files_max`` goes.

    ``beside`` is told when lines begin to wait and when they are written, since the file cannot say so.
    """

    def __init__(
        self, path: Path, *, bytes_max: int, files_max: int, waiting_bytes_max: int, beside: logging.Handler
    ) -> None:
        super().__init__()
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._waiting_bytes_max = waiting_bytes_max
        self._beside = beside
        self._file = -1
        self._size = 0
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._is_held = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or let it wait."""
        try:
            line = self._line(record)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            self.handleError(record)
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        while self._waiting_bytes > self._waiting_bytes_max and len(self._waiting) > 1:
            self._waiting_bytes -= len(self._waiting.popleft())
            self._dropped += 1
        self._drain()

    def close(self) -> None:
        """Write what waits if it can be, and let go of the file."""
        self.acquire()
        try:
            if self._waiting:
                self._drain()
            self._let_go()
        finally:
            self.release()
        super().close()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(errors="backslashreplace")

    def _drain(self) -> None:
        try:
            self._open()
            if self._dropped:
                self._write(self._line(self._note(logging.WARNING, _DROPPED % self._dropped)))
                self._dropped = 0
            while self._waiting:
                self._write(self._waiting[0])
                self._waiting_bytes -= len(self._waiting.popleft())
        except OSError as error:
            self._let_go()
            if not self._is_held:
                self._is_held = True
                what = f"log.waiting: {self._path} cannot be written, lines wait in memory: {error.strerror}"
                self._beside.handle(self._note(logging.ERROR, what))
        else:
            if self._is_held:
                self._is_held = False
                self._beside.handle(self._note(logging.INFO, f"log.back: {self._path} is written again"))

    def _note(self, level: int, text: str) -> logging.LogRecord:
        return logging.LogRecord(__name__, level, __file__, 0, text, None, None)

    def _open(self) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._file).st_size
            if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
                self._write(b"\n")  # a process was killed within a line: the next one begins anew

    def _write(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._bytes_max:
            self._rotate()
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)

    def _rotate(self) -> None:
        self._let_go()
        for number in range(self._files_max - 1, 0, -1):
            if self._older(number).exists():
                self._older(number).replace(self._older(number + 1))
        self._path.replace(self._older(1))
        self._open()

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
