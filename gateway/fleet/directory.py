"""Where a fleet lives on disk."""

import tempfile
from pathlib import Path

from gateway.errors import ConfigError


def empty_directory(named: Path | None, prefix: str) -> Path:
    """The named directory, made if it is missing, or a new temporary one.

    Raises ConfigError when the one that was named is not empty.
    """
    if named is None:
        return Path(tempfile.mkdtemp(prefix=prefix))
    root = named.expanduser().absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(root.iterdir()):
            raise ConfigError(f"{root} is not empty", hint="name a new directory with --dir")
    except OSError as error:
        raise ConfigError(f"cannot use {root}: {error.strerror}") from None
    return root
