"""Which entries of each outbox are in the lake, and which are missing.

A bitmap a bucket of 32,768 places: exact, idempotent, and a few kilobytes for each bucket to exchange,
however many events there are. (A window over ``seq`` would sort all events of the busiest node in one
task.) Full buckets travel as a number; those with holes are few and are looked at here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from outbox.ids import Seq
from spark.limits import GAP_RANGES_MAX
from spark.schema import nothing
from spark.spans import Span, without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET = 32_768
"""Places in one of Spark's bitmaps."""

SCHEMA = "node string, epoch string, first bigint, last bigint, missing bigint"
"""The gaps table: one row for each run of missing entries, both ends included."""

_RUN = re.compile("1+")


class Bucket(msgspec.Struct, frozen=True):
    """The places ``(number - 1) * 32768 + 1`` … ``number * 32768`` of one epoch of an outbox."""

    node: str
    epoch: str
    number: int
    bits: bytes | None
    """Which of them are there, lowest place first, lowest bit first; None when all are."""
    events: int
    """Rows, copies counted."""
    flagged: int
    """Rows of these about which the collector had doubts."""


class Gap(msgspec.Struct, frozen=True):
    """A run of missing entries, both ends included."""

    node: str
    epoch: str
    first: int
    last: int
    missing: int


Forgotten = Mapping[tuple[str, str], Sequence[Span]]
"""Of an epoch of an outbox the places, in order, that its writer had forgotten before it was collected."""


def gaps_table(spark: "SparkSession", buckets: Sequence[Bucket], forgotten: Forgotten) -> "DataFrame":
    """The table with ``SCHEMA`` of what is missing between the first place and the last that is there."""
    found = [msgspec.structs.astuple(gap) for gap in gaps(buckets, forgotten)]
    return spark.createDataFrame(found, SCHEMA) if found else nothing(spark, SCHEMA)


def seq_gaps(gaps: "DataFrame") -> "DataFrame":
    """The gaps as subjects of incidents: one for each epoch of an outbox."""
    return (
        gaps.groupBy("node", "epoch")
        .agg({"missing": "sum", "first": "min", "last": "max"})
        .selectExpr(
            "concat_ws('/', node, epoch) as subject",
            "cast(null as timestamp) as openedAt",
            "array(node) as nodes",
            "concat(`sum(missing)`, ' entries between ', `min(first)`, ' and ', `max(last)`) as detail",
            "array(concat_ws('/', node, epoch, `min(first)`)) as evidence",
        )
    )


def buckets_of(events: "DataFrame") -> list[Bucket]:
    """All of them, sorted by node, epoch and number."""
    rows = _buckets(events).collect()
    found = (
        Bucket(row.node, row.epoch, row.number, _bytes(row.bits), row.events, row.flagged) for row in rows
    )
    return sorted(found, key=attrgetter("node", "epoch", "number"))


def _bytes(bits: bytearray | None) -> bytes | None:
    return None if bits is None else bytes(bits)


def _buckets(events: "DataFrame") -> "DataFrame":
    """Columns as the fields of ``Bucket``."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it

    places = events.selectExpr(
        "sourceNodeId as node",
        "epoch",
        "bitmap_bucket_number(seq) as number",
        "bitmap_bit_position(seq) as place",
        "flags",
    )
    return (
        places.groupBy("node", "epoch", "number")
        .agg(
            F.expr("bitmap_construct_agg(place)").alias("bits"),
            F.expr("count(*)").alias("events"),
            F.expr("count(flags)").alias("flagged"),
        )
        .selectExpr(
            "node",
            "epoch",
            "number",
            f"case when bitmap_count(bits) < {BUCKET} then bits end as bits",
            "events",
            "flagged",
        )
    )


def gaps(buckets: Iterable[Bucket], forgotten: Forgotten) -> Iterator[Gap]:
    """The missing runs that nobody has signed away, from the buckets that there are, sorted.

    At most ``GAP_RANGES_MAX`` an epoch: the last of them then reaches over all that are left.
    """
    for (node, epoch), found in groupby(buckets, key=attrgetter("node", "epoch")):
        runs = _lost(found, forgotten.get((node, epoch), ()))
        for first, last in islice(runs, GAP_RANGES_MAX - 1):
            yield Gap(node, epoch, first, last, last - first + 1)
        rest = list(runs)
        if rest:
            yield Gap(node, epoch, rest[0][0], rest[-1][1], sum(last - first + 1 for first, last in rest))


def _lost(buckets: Iterable[Bucket], forgotten: Sequence[Span]) -> Iterator[tuple[int, int]]:
    for first, last in _missing(buckets):
        yield from without(Span(Seq(first), Seq(last)), forgotten)


def _missing(buckets: Iterable[Bucket]) -> Iterator[tuple[int, int]]:
    due = 1
    for bucket in buckets:
        for first, last in _present(bucket):
            if first > due:
                yield due, first - 1
            due = last + 1


def _present(bucket: Bucket) -> Iterator[tuple[int, int]]:
    start = (bucket.number - 1) * BUCKET + 1
    if bucket.bits is None:
        yield start, start + BUCKET - 1
        return
    places = f"{int.from_bytes(bucket.bits, 'little'):b}"[::-1]
    for run in _RUN.finditer(places):
        yield start + run.start(), start + run.end() - 1
