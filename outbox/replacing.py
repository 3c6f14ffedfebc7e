"""Files that are there as a whole or not at all: written beside their place, synced, renamed, named for good.

Readers see the old content or the new, after a crash at any step too.
"""

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put a file of 0600 in place in one step; on disk when this returns. Raises OSError.

    One writer a path at a time: the draft of a writer that was killed is taken away by the next one.
    """
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a rename is on disk once its directory is. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
