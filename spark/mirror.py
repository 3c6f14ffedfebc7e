"""A copy of a lake in an object store, on this machine: for a Spark that knows no object store.

PySpark comes without the jars for one. Files of a lake never change, so a copy is brought up to date by their
names: what is not here yet is fetched, what is there no more is removed.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from spark.layout import EVENTS, FORGOTTEN, FORKS, STREAMS_GLOB, covering, span_of
from spark.objects import ObjectPath, size_of
from spark.sinks import write_file

Progress = Callable[[int, int], None]
"""``progress(files done, of)``: before each that is fetched."""


def mirror(lake: ObjectPath, into: Path, progress: Progress) -> Path:
    """Copy what a report reads of ``lake``, and return where that is: a directory of its own in ``into``.

    Raises LakeUnreachable; OSError when a file cannot be read or written.
    """
    place = into / f".lake-{hashlib.sha256(str(lake).encode()).hexdigest()[:16]}"
    for other in into.glob(".lake-*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)
    wanted = {place.joinpath(*path.parts[len(lake.parts) :]): path for path in _read_files(lake)}
    for left in [path for path in place.rglob("*") if path.is_file() and path not in wanted]:
        left.unlink()
    lacking = [(here, path) for here, path in wanted.items() if not _is_here(here, path)]
    for done, (here, path) in enumerate(lacking):
        progress(done, len(lacking))
        here.parent.mkdir(parents=True, exist_ok=True)
        write_file(path.read_bytes(), here)
    return place


def _read_files(lake: ObjectPath) -> Iterator[ObjectPath]:
    """What counts: files that others cover do not."""
    for table in (EVENTS, FORKS, FORGOTTEN):
        for directory in (lake / table).glob(STREAMS_GLOB):
            found = list(directory.glob("*"))
            kept = set(covering(path.name for path in found))
            yield from (path for path in found if span_of(path.name) in {None, *kept})


def _is_here(here: Path, path: ObjectPath) -> bool:
    return here.exists() and here.stat().st_size == size_of(path)
