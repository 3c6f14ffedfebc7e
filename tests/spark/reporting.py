"""Runs the job over rows and reads back what it made."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from spark.events import statements
from spark.job import STEPS, make_report
from spark.layout import EVENTS, stream_dir
from spark.schema import arrow_schema
from spark.sla import Threshold
from spark.sources import event_files
from spark.spans import Span
from spark.tasks import STEPS as TASK_STEPS
from tests.spark.histories import ACCEPT_MS, AS_OF_MS, NODES, PROCESS_MS, START_MS, TAKE_ON_MS, Script

THRESHOLDS = {
    "message": Threshold(ACCEPT_MS, PROCESS_MS),
    "task_create": Threshold(ACCEPT_MS, TAKE_ON_MS),
    **{kind: Threshold(ACCEPT_MS) for kind in ("reply", *TASK_STEPS)},
}


def put(lake, rows):
    """Make the lake hold these rows: a file for each epoch of an outbox, the rows in the order given."""
    streams = defaultdict(list)
    for row in rows:
        streams[row.source_node_id, row.epoch].append(row)
    for (node, epoch), entries in streams.items():
        last = max(entry.seq for entry in entries)
        put_file(lake / EVENTS / stream_dir(node, epoch) / Span(1, last).file_name, entries)


def put_file(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema=arrow_schema())
    pq.write_table(table, path)


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


def told(spark, place, rows):
    """What the rows say."""
    return statements(frame(spark, place, rows), NODES)


def table(out, name):
    return pq.read_table(out / name).to_pylist()


def micros(when):
    return None if when is None else (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def one(created=START_MS, **more):
    return Script(**{"created_ms": created, "sender": "a", "receiver": "b"} | more)
