"""Puts results in place: a reader sees the old one or the new one, never half of one."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_table(frame: "DataFrame", directory: Path, unlike: Iterable[str] = ()) -> None:
    """Write Parquet beside ``directory`` and swap; a crash leaves the old table or, for an instant, none.

    ``unlike`` are columns in which hardly any value comes twice: no dictionary of them is tried.
    """
    fresh = directory.with_name(f".{directory.name}.new")
    old = directory.with_name(f".{directory.name}.old")
    plain = {f"parquet.enable.dictionary#{name}": "false" for name in unlike}
    frame.write.mode("overwrite").options(**plain).parquet(str(fresh))
    shutil.rmtree(old, ignore_errors=True)
    if directory.exists():
        directory.rename(old)
    fresh.rename(directory)
    shutil.rmtree(old, ignore_errors=True)


def write_file(content: bytes, path: Path) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
