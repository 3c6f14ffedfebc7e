"""Follows a lake as it grows: incidents as they open, and as they close.

A stream keeps the sides (``spark.sides``) of every message that is open or was heard of lately, adds what
each new file says to them, and judges them by the rules of the batch job: the same functions, so the same
answers.
The clock on the wall is the watermark: a tick a second makes a batch even when no file comes, so that silence
raises incidents too.

Exactly once: everything that a batch writes lies under its number and is overwritten when it is done again,
and batch *n* begins with the newest state below *n*. So it does not matter where in a batch the process dies.

::

    follow/checkpoint/        Spark's own: which files belong to which batch
    follow/state/v=<n>/       sides after batch n
    follow/told/v=<n>/        incidents of these messages, as told last
    follow/changes/batch=<n>/ what batch n told

A message whose life is over is forgotten a day after it was last heard of; what comes later still is for the
batch job, which is the truth and corrects. So are the classes about outboxes (gaps, forks, skews, strangers).
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark.changes import changes, standing
from spark.deliveries import lifecycle
from spark.errors import LakeEmpty
from spark.events import statements
from spark.incidents import incidents
from spark.layout import EVENTS, STREAMS_GLOB, stream_of
from spark.limits import FOLLOW_FILES_MAX, FOLLOW_HORIZON_MS
from spark.schema import COLUMNS, spark_schema
from spark.sides import merged, sides
from spark.sla import Threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OPEN = """
state in ('emitted', 'retry_pending')
or state = 'accepted' and processDueAt is not null
or taskState in ('created', 'accepted', 'working')
"""
"""A message of which more is to be heard."""


class Following(msgspec.Struct, frozen=True, kw_only=True):
    """What is followed, and how it is judged."""

    lake: Path
    out: Path
    thresholds: Mapping[str, Threshold]
    now_ms: Callable[[], int]
    """The clock on the wall."""
    tell: Callable[["DataFrame"], None]
    """Called with each batch's changes, before Spark notes that the batch is done: again after a crash."""
    horizon_ms: int = FOLLOW_HORIZON_MS

    @property
    def place(self) -> Path:
        """Where the stream keeps what it knows."""
        return self.out / "follow"


def start(spark: "SparkSession", following: Following, *, interval_s: float | None) -> "StreamingQuery":
    """Begin, or go on where it ended; a batch every ``interval_s``, or with None what is there and no more.

    With None a batch that was left unfinished is all that is done: start once more for the rest.
    Raises LakeEmpty: there is no directory to follow yet.
    """
    source = following.lake / EVENTS
    if not source.is_dir():
        raise LakeEmpty(
            f"{following.lake} holds no events",
            hint=f"fill it first: gateway collect --lake {following.lake}",
        )
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")  # compaction replaces files meanwhile
    writer = (
        _rows(spark, source)
        .writeStream.foreachBatch(lambda frame, number: take(frame, number, following))
        .option("checkpointLocation", (following.place / "checkpoint").as_uri())
    )
    if interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval_s} seconds").start()


def _rows(spark: "SparkSession", source: Path) -> "DataFrame":
    """Rows of new files, and a row of nulls for each second that passes."""
    rows = (
        spark.readStream.schema(spark_schema())
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "seq-*.parquet")
        .option("maxFilesPerTrigger", FOLLOW_FILES_MAX)
        .parquet(str(source.absolute()))
    )
    seconds = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    types = {field.name: field.dataType.simpleString() for field in spark_schema()}
    return rows.union(
        seconds.selectExpr(*(f"cast(null as {types[column.name]}) as {column.name}" for column in COLUMNS))
    )


def take(frame: "DataFrame", number: int, following: Following) -> None:
    """Do one batch. Doing it again, whole or after half of it, changes nothing."""
    spark, as_of_ms = frame.sparkSession, following.now_ms()
    heard = sides(statements(frame.where("sourceNodeId is not null"), _nodes(following.lake)))
    heard = heard.selectExpr("*", f"{as_of_ms}L as heardMs")
    before = _newest(following.place / "state", number)
    known = heard if before is None else heard.unionByName(_read(spark, before))
    gathered = merged(known, heardMs="max").persist()
    lives = lifecycle(gathered, following.thresholds).persist()

    kept = _remembered(gathered, lives, as_of_ms - following.horizon_ms).persist()
    found = incidents(lives, as_of_ms).persist()
    told = _newest(following.place / "told", number)
    news = changes(found, _read(spark, told) if told is not None else found.limit(0))
    try:
        _write(news, following.place / "changes" / f"batch={number}")
        _write(gathered.join(kept, "rootId", "left_semi"), following.place / "state" / f"v={number}")
        _write(found.join(kept, "rootId", "left_semi"), following.place / "told" / f"v={number}")
        following.tell(_read(spark, following.place / "changes" / f"batch={number}"))
    finally:
        for held in (gathered, lives, kept, found):
            held.unpersist()
    for name in ("state", "told"):
        _forget(following.place / name, number - 1)


def _remembered(gathered: "DataFrame", lives: "DataFrame", since_ms: int) -> "DataFrame":
    """Roots that are open, or were heard of since; of some only answers are known, and no life."""
    last = gathered.groupBy("rootId").agg({"heardMs": "max"}).withColumnRenamed("max(heardMs)", "lastMs")
    open_roots = lives.where(OPEN).selectExpr("rootId", "true as isOpen")
    both = last.join(open_roots, "rootId", "left")
    return both.where(f"isOpen or lastMs > {since_ms}L").select("rootId")


def incidents_told(spark: "SparkSession", place: Path) -> "DataFrame":
    """The incidents that hold by what a stream told so far, with the columns of the incidents table."""
    return standing(spark.read.parquet(str((place / "changes").absolute())))


def _nodes(lake: Path) -> list[str]:
    found = (stream_of(directory) for directory in (lake / EVENTS).glob(STREAMS_GLOB))
    return sorted({stream[0] for stream in found if stream is not None})


def _newest(place: Path, below: int) -> Path | None:
    """The newest finished version below this number."""
    done = [number for number in _versions(place) if number < below]
    return place / f"v={max(done)}" if done else None


def _versions(place: Path) -> list[int]:
    return [int(path.parent.name.removeprefix("v=")) for path in place.glob("v=*/_SUCCESS")]


def _forget(place: Path, below: int) -> None:
    for number in _versions(place):
        if number < below:
            shutil.rmtree(place / f"v={number}", ignore_errors=True)


def _read(spark: "SparkSession", directory: Path) -> "DataFrame":
    return spark.read.parquet(str(directory.absolute()))


def _write(frame: "DataFrame", directory: Path) -> None:
    frame.write.mode("overwrite").parquet(str(directory.absolute()))
