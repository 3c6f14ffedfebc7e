"""Starts Spark, or joins one that runs: on this machine, on a cluster, or over Spark Connect.

On this machine nothing listens beyond loopback and there is no web page. The launcher and the JVM write to
``spark.log``, so that the terminal belongs to the caller.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark.classarchive import SWITCH, ClassArchive, class_archive
from spark.errors import SparkFailed, SparkMissing
from spark.interrupting import own_interrupts, stopping
from spark.java import Java, find_java
from spark.masters import LOCAL, Place, place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.file.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c{1}: %m%n%ex
"""

_ON_LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_QUERIES = {
    "spark.sql.session.timeZone": "UTC",
    # The default is INT96: no zone, and nanoseconds to every other reader.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Java does not compile a method above 8,000 bytecodes unless told to.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # What follows from a condition over a hundred columns made of each other is more than a heap can hold,
    # and no query of ours is faster for it.
    "spark.sql.constraintPropagation.enabled": "false",
    # Percentiles of many routes: stay in memory instead of sorting from the 129th route on.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
}
"""What the results depend on, or the plan: the same everywhere."""

# A life is a hundred columns and their rules: generated as one method it is longer than what Java compiles
# unless told to, and cut into several each of them copies the row.
_ANY = "-XX:-DontCompileHugeMethods"
_HUGE_METHOD_BYTES = "65535"

# The fast compiler alone is given 48 MB for its code, which the third report fills: then it is swept in vain.
_SMALL = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

# Tasks share the processors with what serves them: no collector beside them, and the optimising compiler only
# for what runs for long (it is asked ten times as late as usual, so not for planning queries).
_LARGE = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)

_SMALL_QUERIES = {
    # To plan anew between stages is a job for each of them, and takes longer than the stages.
    "spark.sql.adaptive.enabled": "false",
}


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How to start: where files may go and how much there is to do."""

    scratch: Path
    """For what Spark spills; the caller's to remove."""
    log: Path
    """Where Spark and the JVM write."""
    cache: Path
    """For the Java shim and the class archive; kept from run to run."""
    master: str = LOCAL
    partitions: int = 8
    small: bool = False
    """Little data: start quickly rather than run fast."""
    settings: Mapping[str, str] = {}
    """Settings of Spark that win over ours."""
    keeping: Callable[[], None] | None = None
    """Is told that a class archive is made at the end. Without it none is made; one that is there is used."""


@contextmanager
def spark_session(setup: Setup) -> Iterator["SparkSession"]:
    """A session that is stopped at the end.

    Where a JVM is started here, ``JAVA_HOME`` and ``PYSPARK_PYTHON`` of this process are set: that is how
    Spark's launcher is told. Raises InvalidMaster, SparkMissing, JavaMissing, SparkFailed.
    """
    place = place_of(setup.master)
    archive = None
    if place in {Place.LOCAL, Place.CLUSTER}:
        java = find_java(os.environ, setup.cache)
        archive = _archive(setup, place, java)
        os.environ["JAVA_HOME"] = str(java.home)
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else workers take whatever python3 is on PATH
    if place is Place.LOCAL:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    setup.scratch.mkdir(parents=True, exist_ok=True)
    try:
        session = _start(setup, place, archive)
    except SparkFailed:
        if archive is None:
            raise
        archive = None  # whatever it was: Java may know why it does not like it
        session = _start(setup, place, archive)
    if archive is None or archive.made is not None:
        with stopping(session, setup.log):
            yield session
        return
    try:
        with stopping(session, setup.log):
            yield session
    except BaseException:
        archive.give_up(_taken_jvm())
        raise
    if setup.keeping is not None:
        setup.keeping()
    archive.keep(_taken_jvm())


def _archive(setup: Setup, place: Place, java: Java) -> ClassArchive | None:
    """For little data only: else what a start takes is little of the whole."""
    if place is not Place.LOCAL or not setup.small or os.environ.get(SWITCH) == "off" or _is_up():
        return None
    jars = _jars()
    make = setup.keeping is not None
    return None if jars is None else class_archive(java, jars, f"{_ANY} {_SMALL}", setup.cache, make=make)


def _jars() -> Path | None:
    """Where Spark's classes are; None for a Spark that is not PySpark's own."""
    found = find_spec("pyspark")
    if found is None or found.origin is None or os.environ.get("SPARK_HOME"):
        return None
    return Path(found.origin).parent / "jars"


def _is_up() -> bool:
    """Whether this process has a JVM already: it takes no more options."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_gateway", None) is not None


def _taken_jvm() -> "subprocess.Popen[bytes]":
    """The process of the JVM, which is about to end: PySpark is made to forget it, and starts another."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 - nothing public tells it
    assert gateway is not None, "a session was there"
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    gateway.close()
    jvm: subprocess.Popen[bytes] = gateway.proc
    return jvm


def _start(setup: Setup, place: Place, archive: ClassArchive | None) -> "SparkSession":
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(f"Spark is not installed: {error}") from None
    builder = SparkSession.builder.appName("gateway-report")
    if place is Place.CONNECT:
        builder = builder.remote(setup.master)
    elif place is not Place.SUBMITTED:
        builder = builder.master(setup.master)
    for key, value in _settings(setup, place, archive).items():
        builder = builder.config(key, value)
    try:
        with _output_to(setup.log), own_interrupts():
            return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise SparkFailed(f"Spark did not start: {first_line(error)}", hint=f"see {setup.log}") from None
    except ImportError as error:
        raise SparkMissing(
            f"Spark Connect needs more packages: {first_line(error)}", extra="connect"
        ) from None


def _settings(setup: Setup, place: Place, archive: ClassArchive | None) -> dict[str, str]:
    settings = _QUERIES | {"spark.sql.shuffle.partitions": str(setup.partitions)}
    if setup.small:
        settings |= _SMALL_QUERIES
    if place is Place.LOCAL:
        settings |= _ON_LOOPBACK | {"spark.local.dir": str(setup.scratch)}
    if place in {Place.LOCAL, Place.CLUSTER}:
        settings |= {
            "spark.driver.extraJavaOptions": _java_options(setup, archive),
            "spark.executor.extraJavaOptions": _ANY,
            "spark.sql.codegen.hugeMethodLimit": _HUGE_METHOD_BYTES,
            # A report generates 180 classes; of the hundred that Spark keeps none is left for the next one.
            "spark.sql.codegen.cache.maxEntries": "1000",
            "spark.sql.warehouse.dir": (setup.scratch / "warehouse").as_uri(),
        }
    return settings | dict(setup.settings)


def _java_options(setup: Setup, archive: ClassArchive | None) -> str:
    """Options of the JVM; those with paths in quotes, since Spark's launcher splits at spaces."""
    log4j = setup.scratch / "log4j2.properties"
    log4j.write_text(_LOG4J)
    options = [f"-Dlog4j2.configurationFile={log4j.as_uri()}", f'"-Dderby.system.home={setup.scratch}"']
    options += [_ANY, _SMALL if setup.small else _LARGE]
    if archive is not None:
        options.append(archive.option)
    return " ".join(options)


def first_line(error: Exception) -> str:
    """Spark's errors go on for pages; the first line says it, or the one where Java's own message begins."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0])[:300]


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """While the JVM is started, descriptors 1 and 2 are the log: it inherits them for its whole life."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for left in (descriptor, *kept):
            os.close(left)
