"""The report job: a lake in; three Parquet tables, ``incidents.json`` and ``report.html`` out."""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from outbox.errors import MeshError
from outbox.timestamps import parse_rfc3339
from spark.deliveries import UNLIKE, deliveries
from spark.document import incidents_json
from spark.errors import SparkFailed
from spark.events import statements
from spark.figures import Tables, states, summarise
from spark.forks import forked, forks
from spark.gaps import Bucket, Forgotten, buckets_of, gaps_table, seq_gaps
from spark.incidents import broken_rules, incidents, stream_incidents
from spark.limits import INCIDENTS_JSON_MAX, SMALL_LAKE_BYTES
from spark.maintenance import maintenances, marked
from spark.masters import LOCAL, Place, parse_settings, place_of
from spark.mirror import mirror
from spark.objectives import Objective, default_objectives
from spark.objects import LakePath, ObjectPath, lake_path
from spark.report import render
from spark.reviews import reviews
from spark.rules import IncidentClass
from spark.session import Setup, first_line, spark_session
from spark.sinks import write_file, write_table
from spark.skew import clock_skews, skew
from spark.sla import DEFAULTS, Threshold, check_thresholds, latency
from spark.slofile import read_objectives
from spark.sources import EventFiles, event_files, read_copies, read_events
from spark.strangers import strangers, unknown_kinds
from spark.summary import Summary, forgetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Progress = Callable[[str, int, int], None]
"""``progress(what, done, total)``: called before each step, and once more when all are done."""

STEPS = ("start Spark", "lifecycle", "incidents", "latency", "figures", "report")

KEEPING = "keep Java's classes for the next report"
"""A step of the first one only."""

_NO_SETTINGS: Mapping[str, str] = {}

_NO_JARS = (
    "PySpark has no jars for object stores: --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION"
    " brings them (the version of its hadoop-client jars); --master 'local[*]' does without"
)

BYTES_PER_PARTITION = 16 * 1024 * 1024
"""About 600,000 events: what one task of the exchange handles well in a small heap."""


def run(
    lake: LakePath,
    out: Path,
    as_of_ms: int,
    *,
    progress: Progress,
    cache: Path,
    thresholds: Mapping[str, Threshold] = DEFAULTS,
    objectives: Sequence[Objective] | None = None,
    master: str = LOCAL,
    settings: Mapping[str, str] = _NO_SETTINGS,
    keeps_classes: bool = False,
) -> Summary:
    """Make the whole report in ``out`` and return what it shows.

    ``as_of_ms`` is the moment at which open promises are judged; ``cache`` keeps a Java shim and, with
    ``keeps_classes``, an archive that lets the next report start in less time (``spark.classarchive``).
    Without ``objectives`` the thresholds are judged as such (``default_objectives``). On a cluster ``lake``
    and ``out`` must be the same directories to every executor. A lake in an object store is read where
    it is by a cluster, and copied into ``out`` on this machine (``spark.mirror``).
    Raises LakeEmpty, LakeUnreachable, InvalidThreshold, SparkMissing, JavaMissing, SparkFailed.
    """
    check_thresholds(thresholds)
    place = place_of(master)
    out = out.absolute()  # the JVM is given file URIs, and those have no relative form
    if isinstance(lake, ObjectPath) and place is Place.LOCAL:
        event_files(lake)  # an empty one is told by its own name
        lake = mirror(lake, out, lambda done, of: progress(f"fetch file {done + 1} of {of}", 0, len(STEPS)))
    files = event_files(lake)
    out.mkdir(parents=True, exist_ok=True)
    setup = setup_for(files, out, cache=cache, master=master, settings=settings)
    if keeps_classes:
        setup = replace(setup, keeping=lambda: progress(KEEPING, len(STEPS), len(STEPS)))
    progress(STEPS[0], 0, len(STEPS))
    try:
        with spark_session(setup) as spark, spark_errors(setup.log):
            return make_report(
                spark,
                files,
                out,
                as_of_ms,
                progress=progress,
                thresholds=thresholds,
                objectives=objectives,
            )
    finally:
        shutil.rmtree(setup.scratch, ignore_errors=True)


def setup_for(
    files: EventFiles,
    out: Path,
    *,
    cache: Path,
    master: str = LOCAL,
    settings: Mapping[str, str] = _NO_SETTINGS,
) -> Setup:
    """How Spark is started for so much to do."""
    return Setup(
        scratch=out / ".spark",
        log=out / "spark.log",
        cache=cache,
        partitions=files.bytes // BYTES_PER_PARTITION + 1,
        small=files.bytes < SMALL_LAKE_BYTES,
        master=master,
        settings=settings,
    )


def make_report(
    spark: "SparkSession",
    files: EventFiles,
    out: Path,
    as_of_ms: int,
    *,
    progress: Progress,
    thresholds: Mapping[str, Threshold],
    objectives: Sequence[Objective] | None = None,
) -> Summary:
    """The job on a session that is there. Each table is written once and read by the steps after it."""
    steps = iter(range(1, len(STEPS) + 1))

    def begin() -> None:
        done = next(steps)
        progress(STEPS[done] if done < len(STEPS) else "done", done, len(STEPS))

    begin()
    events = read_events(spark, files)
    told = deliveries(statements(events, files.nodes), thresholds, broken_rules(as_of_ms))
    with gathering(spark):
        lifecycle = _kept(spark, told, out / "lifecycle", UNLIKE)
    begin()
    held = buckets_of(events)
    of_streams = _of_streams(spark, files, events, held, lifecycle, out=out)
    announced = _kept(spark, maintenances(events), out / "maintenance")
    found = _kept(spark, marked(_all_incidents(lifecycle, of_streams), announced), out / "incidents")
    write_table(reviews(found), out / "reviews")
    begin()
    tables = Tables(
        held=held,
        lifecycle=lifecycle,
        incidents=found,
        states=_kept(spark, states(lifecycle), out / "states"),
        latency=_kept(spark, latency(lifecycle, as_of_ms), out / "latency"),
        maintenance=announced,
    )
    begin()
    judged = default_objectives(thresholds) if objectives is None else objectives
    summary = summarise(tables, as_of_ms, thresholds, judged)
    summary = forgetting(summary, {(found.node, found.epoch): found.entries for found in files.forgotten})
    begin()
    write_file(incidents_json(summary, INCIDENTS_JSON_MAX), out / "incidents.json")
    write_file(render(summary).encode(), out / "report.html")
    begin()
    return summary


@contextmanager
def gathering(spark: "SparkSession") -> Iterator[None]:
    """Sides lie sorted by message: a hash table of objects would give up at 128 and sort them anew."""
    name = "spark.sql.execution.useObjectHashAggregateExec"
    before = spark.conf.get(name) or "true"
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, before)


def _kept(
    spark: "SparkSession", frame: "DataFrame", directory: Path, unlike: Iterable[str] = ()
) -> "DataFrame":
    """Write a table and read it from there: what follows does not compute it again.

    Its schema is known: to ask the files for it would be a job.
    """
    write_table(frame, directory, unlike)
    return spark.read.schema(frame.schema).parquet(str(directory))


def _of_streams(
    spark: "SparkSession",
    files: EventFiles,
    events: "DataFrame",
    held: Sequence[Bucket],
    lifecycle: "DataFrame",
    *,
    out: Path,
) -> dict[IncidentClass, "DataFrame"]:
    """Write the tables about outboxes, and read the subjects of their incidents from there."""
    twice = forks(read_copies(spark, files), files.proofs)
    gone: Forgotten = {(found.node, found.epoch): found.places for found in files.forgotten}
    return {
        IncidentClass.SEQ_GAP: seq_gaps(_kept(spark, gaps_table(spark, held, gone), out / "gaps")),
        IncidentClass.FORK: forked(_kept(spark, twice, out / "forks")),
        IncidentClass.CLOCK_SKEW: clock_skews(_kept(spark, skew(lifecycle), out / "skew")),
        IncidentClass.UNKNOWN_KIND: unknown_kinds(_kept(spark, strangers(events), out / "strangers")),
    }


def _all_incidents(lifecycle: "DataFrame", of_streams: Mapping[IncidentClass, "DataFrame"]) -> "DataFrame":
    """Those of messages and those of outboxes."""
    all_of_them = incidents(lifecycle)
    for name, found in of_streams.items():
        all_of_them = all_of_them.unionByName(stream_incidents(found, name))
    return all_of_them


@contextmanager
def spark_errors(log: Path) -> Iterator[None]:
    """Raise what Spark raises as SparkFailed, in one line."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        hint = _NO_JARS if "S3AFileSystem not found" in str(error) else f"see {log}"
        raise SparkFailed(f"the report job failed: {first_line(error)}", hint=hint) from error


def main(arguments: list[str] | None = None) -> int:
    """``python -m spark.job LAKE OUT [OPTIONS]``: for schedulers that have no ``gateway`` command."""
    parser = argparse.ArgumentParser(prog="python -m spark.job", description=__doc__)
    parser.add_argument("lake", type=lake_path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--as-of", help="RFC 3339; now unless given")
    parser.add_argument("--slo", type=Path, help="objectives, as OpenSLO v1 YAML")
    parser.add_argument("--master", default=LOCAL, help="where to run; empty under spark-submit")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/gateway-mesh").expanduser())
    given = parser.parse_args(arguments)
    try:
        as_of_ms = parse_rfc3339(given.as_of) if given.as_of else _now_ms()
        summary = run(
            given.lake,
            given.out,
            as_of_ms,
            progress=_tell,
            cache=given.cache,
            objectives=read_objectives(given.slo) if given.slo else None,
            master=given.master,
            settings=parse_settings(given.conf),
        )
    except MeshError as error:
        sys.stderr.write(f"{error.code}: {error}\n{error.hint}\n")
        return 1
    sys.stdout.write(f"{summary.open_incidents} open incidents; report in {given.out / 'report.html'}\n")
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - the command line of a job is where its clock is read


def _tell(what: str, done: int, total: int) -> None:
    sys.stderr.write(f"[{done}/{total}] {what}\n")


if __name__ == "__main__":
    sys.exit(main())
