"""What this machine's disk can do: 512 bytes a record, fdatasync after each batch, over zeroed space."""

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

RECORD_BYTES = 512
_SPACE_BYTES = 32 << 20


@dataclass(frozen=True)
class Raw:
    """The limit for one batch size."""

    records_per_s: float
    sync_ms: float
    """Median of one write and fdatasync."""


def raw_limit(folder: Path, batch: int, seconds: float = 1.0) -> Raw:
    """Append and sync for a while on the disk of ``folder``."""
    path = folder / "raw.bin"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        for _ in range(_SPACE_BYTES >> 20):
            os.write(handle, bytes(1 << 20))
        os.fsync(handle)
        times = _appends(handle, bytes(RECORD_BYTES * batch), seconds)
    finally:
        os.close(handle)
        path.unlink()
    return Raw(batch * len(times) / sum(times), statistics.median(times) * 1000)


def _appends(handle: int, record: bytes, seconds: float) -> list[float]:
    times: list[float] = []
    at, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        os.pwrite(handle, record, at)
        os.fdatasync(handle)
        times.append(time.perf_counter() - begun)
        at = (at + len(record)) % (_SPACE_BYTES - len(record))
    return times
