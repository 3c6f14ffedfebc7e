"""Benchmarks print tables and never fail on a number: see docs/PERFORMANCE.md for how to read them."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on the disk to be measured: BENCH_DIR, else the temp directory; a tmpfs would tell nothing."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
        yield Path(folder)
