"""Runs the job over rows and reads back what it made."""

from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from spark.job import STEPS, make_report
from spark.layout import EVENTS, Span, stream_dir
from spark.schema import arrow_schema
from spark.sla import Threshold
from spark.sources import event_files
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, PROCESS_MS, START_MS, Script

THRESHOLDS = {"message": Threshold(ACCEPT_MS, PROCESS_MS), "reply": Threshold(ACCEPT_MS)}


def put(lake, rows):
    """Make the lake hold these rows."""
    directory = lake / EVENTS / stream_dir("a", "000001-000000000000")
    directory.mkdir(parents=True)
    table = pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema=arrow_schema())
    pq.write_table(table, directory / Span(1, len(rows)).file_name)


def report(spark, place, rows):
    """Everything the job makes of these rows: the summary, and the directory with the rest."""
    put(place / "lake", rows)
    out = place / "out"
    out.mkdir(parents=True)
    done = []
    files = event_files(place / "lake")
    summary = make_report(
        spark, files, out, AS_OF_MS, progress=lambda *step: done.append(step), thresholds=THRESHOLDS
    )
    assert [step[1] for step in done] == list(range(1, len(STEPS) + 1))
    return summary, out


def frame(spark, place, rows):
    """The rows as Spark reads them from a lake."""
    from spark.sources import read_events

    put(place, rows)
    return read_events(spark, event_files(place))


def table(out, name):
    return pq.read_table(out / name).to_pylist()


def micros(when):
    return None if when is None else (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def one(created=START_MS, **more):
    return Script(created_ms=created, sender="a", receiver="b", **more)
