"""Follows a lake as it grows: incidents as they open, and as they close.

A stream keeps the sides (``spark.sides``) of every message that is open or was heard of lately, adds what
each new file says to them, and judges them by the rules of the batch job: the same functions, so the same
answers.
The clock on the wall is the watermark: a tick a second makes a batch even when no file comes, so that silence
raises incidents too.

A batch is one query with one exchange, and two small ones over what it wrote. The state has one row a
message, with its sides inside: so nothing is joined. For a few thousand events planning a query costs more
than running it; that is what this shape saves.

Exactly once: everything that a batch writes lies under its number and is overwritten when it is done again,
and batch *n* begins with the newest state below *n*. So it does not matter where in a batch the process dies.

What is over is put aside every ten minutes, so that a batch does not grow with the day. A message that is new
to the state but old enough to be among those is *asked* for: its batch tells nothing of it, and the next one
opens what was put aside.

::

    follow/checkpoint/        Spark's own: which files belong to which batch
    follow/state/v=<n>/       messages after batch n: their sides, and their incidents as told then and before
    follow/over/v=<n>-<ms>/   those that batch n put aside, and when it was
    follow/changes/batch=<n>/ what batch n told

A message whose life is over is forgotten a day after it was last heard of; what comes later still is for the
batch job, which is the truth and corrects. So are the classes about outboxes (gaps, forks, skews, strangers).
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark.aside import forget, opened, put, put_aside
from spark.changes import changes, standing
from spark.deliveries import DELIVERY, lives
from spark.errors import LakeEmpty
from spark.events import Role, statements
from spark.incidents import DETAIL, OF_LIFECYCLE, hits, rows
from spark.layout import EVENTS, STREAMS_GLOB, stream_of
from spark.limits import FOLLOW_FILES_MAX, FOLLOW_HORIZON_MS, FOLLOW_LINGER_MS
from spark.schema import COLUMNS, spark_schema
from spark.sides import GATHERED, ROOT_HASH, apart, merged
from spark.sla import Threshold
from spark.stages import Times, number_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

_HITS = """
array<struct<
    class: string, severity: string, openedAt: timestamp, closedAt: timestamp, detail: string, state: string
>>
"""
_TOLD = f"struct<batch: bigint, hits: {_HITS}, subject: string>"
"""What was told, in which batch, and as what: of several copies of a row the last one counts."""

_SAID = "named_struct('batch', batch, 'hits', found, 'subject', subject)"

_LAST_TOLD = "if(told is null or whole.batch > told.batch, whole, told)"
"""Of what went to several nodes after all, and was told of as a whole before, each row withdraws that."""

_SHOWN = f"""
named_struct(
    'class', hit.class, 'severity', hit.severity, 'openedAt', hit.openedAt, 'closedAt', hit.closedAt,
    'detail', {DETAIL}, 'state', state
)
"""

_SETTINGS = {
    "spark.sql.files.ignoreMissingFiles": "true",  # compaction replaces files meanwhile
    # No join and one exchange: to plan anew between stages takes longer than the stages.
    "spark.sql.adaptive.enabled": "false",
    # Numbers that differ from batch to batch are given as text: folded, they would be part of the generated
    # code, and each batch would compile its own.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    # Sides come sorted by message, so gathering them needs no hash table of objects.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
}


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
    linger_ms: int = FOLLOW_LINGER_MS

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
    own = spark.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(name, value)
    writer = (
        _rows(own, source)
        .writeStream.foreachBatch(lambda frame, number: take(frame, number, following))
        .option("checkpointLocation", (following.place / "checkpoint").as_uri())
    )
    if interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval_s} seconds").start()


def _rows(spark: "SparkSession", source: Path) -> "DataFrame":
    """Rows of new files, and a row of nulls for each second that passes."""
    files = (
        spark.readStream.schema(spark_schema())
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "seq-*.parquet")
        .option("maxFilesPerTrigger", FOLLOW_FILES_MAX)
        .parquet(str(source.absolute()))
    )
    rate = spark.readStream.format("rate").options(rowsPerSecond=1, numPartitions=1)
    seconds = rate.load()
    types = {field.name: field.dataType.simpleString() for field in spark_schema()}
    return files.union(
        seconds.selectExpr(*(f"cast(null as {types[column.name]}) as {column.name}" for column in COLUMNS))
    )


def take(frame: "DataFrame", number: int, following: Following) -> None:
    """Do one batch. Doing it again, whole or after half of it, changes nothing."""
    spark, as_of_ms = frame.sparkSession, following.now_ms()
    heard = statements(frame.where("sourceNodeId is not null"), _nodes(following.lake))
    known = apart(heard).selectExpr(
        "*", f"{number_text(as_of_ms)} as heardMs", f"cast(null as {_TOLD}) as told", "false as isKnown"
    )
    before = _newest(following.place / "state", number)
    aside = put_aside(following.place / "over", number)
    if before is not None:
        state = _read(spark, before)
        known = known.unionByName(_remembered(state.where("stage in ('open', 'asked')")))
        asked = state.where("stage = 'asked'").select("rootId")
        over = opened(spark, aside, state.schema)
        if over is not None and not asked.isEmpty():
            known = known.unionByName(_remembered(over.join(asked, "rootId", "left_semi")))
    times = Times(
        as_of_ms=as_of_ms,
        gone_ms=as_of_ms - following.horizon_ms,
        over_ms=as_of_ms - following.linger_ms,
        aside_ms=max((each.at_ms for each in aside), default=None),
        asked_ms=max((each.at_ms for each in aside if each.holds_any), default=None),
    )
    place, told = following.place / "state" / f"v={number}", following.place / "changes" / f"batch={number}"

    judged = _judged(known, following.thresholds, times, number)
    _write(judged, place)
    written = _read(spark, place, judged.schema)
    news = _news(written)
    _write(news, told)
    if times.puts_aside:
        put(written.where("stage = 'over'"), following.place / "over", number, as_of_ms)
    following.tell(_read(spark, told, news.schema))
    _forget(following.place / "state", number - 1)
    forget(aside, times.gone_ms)


def _remembered(state: "DataFrame") -> "DataFrame":
    """The sides of the messages of a state.

    A row of one node of several brings all sides, and speaks for its own: the others are deliveries only by
    rows of their own, which may have been forgotten.
    """
    sides = state.selectExpr("*", "inline(halves)")
    its_own = "(delivery is null or node = delivery)"
    return sides.selectExpr(
        ROOT_HASH,
        "rootId",
        "node",
        f"if({its_own}, facts, facts & ~{1 << Role.ADDRESSED}) as facts",
        *(name for name in GATHERED if name != "facts"),
        "lastMs as heardMs",
        f"if({its_own} and stage <> 'asked', {_SAID}, null) as told",
        "true as isKnown",
    )


def _judged(
    sides: "DataFrame", thresholds: Mapping[str, Threshold], times: Times, number: int
) -> "DataFrame":
    """The state: one row a message, or a node of several that it went to.

    Of some only answers are known, and no life: they have no incidents.
    """
    together = merged(sides, heardMs="max", told="max", isKnown="max")
    judged = lives(
        together,
        thresholds,
        {"told": "told"},
        halves=f"collect_list(struct(node, {', '.join(GATHERED)}))",
        lastMs="max(heardMs)",
        told="max(told)",
        whole="max(if(told.subject = rootId, told, null))",
        isKnown="max(isKnown)",
    )
    held = hits(f"timestamp_millis({number_text(times.as_of_ms)})")
    found = f"case when kind is not null and stage <> 'asked' then {held} else array() end"
    staged = judged.selectExpr("* except (told, whole)", f"{_LAST_TOLD} as told", f"{times.stage} as stage")
    shown = staged.selectExpr("*", f"transform({found}, hit -> {_SHOWN}) as found")
    return shown.selectExpr(
        "rootId",
        "subject",
        f"{DELIVERY} as delivery",
        "halves",
        "lastMs",
        "stage",
        f"{number_text(number)} as batch",
        f"cast(found as {_HITS}) as found",
        f"coalesce(told.hits, cast(array() as {_HITS})) as told",
        "told.subject as toldOf",
        f"if(size(found) > 0 or size(told.hits) > 0, struct({', '.join(OF_LIFECYCLE)}), null) as life",
    )


def _news(state: "DataFrame") -> "DataFrame":
    """What opened, changed or was withdrawn: ``change``, and the columns of the incidents table."""
    told = changes(state.selectExpr("rootId", "subject", "life.*", "found", "told", "toldOf"))
    return rows(told, "change", detail="detail")


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


def _read(spark: "SparkSession", directory: Path, schema: "StructType | None" = None) -> "DataFrame":
    """Given a schema, no file is opened before there is something to read from it."""
    return (spark.read if schema is None else spark.read.schema(schema)).parquet(_name(directory))


def _write(frame: "DataFrame", directory: Path) -> None:
    frame.write.mode("overwrite").parquet(_name(directory))


def _name(directory: Path) -> str:
    return str(directory.absolute())
