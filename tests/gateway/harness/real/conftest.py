"""A place for a run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def mesh_dir() -> Iterator[Path]:
    """A directory with a short path: sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="gh-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)
