"""Messages that are over and that a stream has put aside: a directory for each time it did.

``over/v=<n>-<ms>/stage=over/`` are those of batch *n*, put aside at that time. A directory that batch *n*
left unfinished does not count, and neither does what batches from *n* on wrote when *n* is done again. Of a
message that was heard of again and is over once more there are several copies.
"""

import shutil
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Aside(msgspec.Struct, frozen=True):
    """What was over at a time."""

    number: int
    at_ms: int
    place: Path

    @property
    def holds_any(self) -> bool:
        """Some were."""
        return (self.place / "stage=over").exists()


def put_aside(place: Path, below: int) -> list[Aside]:
    """What batches below this number put aside, oldest first."""
    found = []
    for path in place.glob("v=*-*/_SUCCESS"):
        number, _, at_ms = path.parent.name.removeprefix("v=").partition("-")
        found.append(Aside(int(number), int(at_ms), path.parent))
    return sorted((each for each in found if each.number < below), key=attrgetter("number"))


def put(over: "DataFrame", place: Path, number: int, at_ms: int) -> None:
    """Put these aside, in place of what this batch put aside before."""
    for left in place.glob(f"v={number}-*"):
        shutil.rmtree(left)
    # By stage: so a directory says that there are any.
    over.write.mode("overwrite").partitionBy("stage").parquet(_name(place / f"v={number}-{at_ms}"))


def opened(spark: "SparkSession", aside: Sequence[Aside], schema: "StructType") -> "DataFrame | None":
    """All copies of all messages; None when there are none."""
    full = [each for each in aside if each.holds_any]
    if not full:
        return None
    reader = spark.read.schema(schema).option("basePath", _name(full[0].place.parent))
    return reader.parquet(*(_name(each.place) for each in full))


def forget(aside: Iterable[Aside], until_ms: int) -> None:
    """Remove what was put aside until then."""
    for each in aside:
        if each.at_ms <= until_ms:
            shutil.rmtree(each.place, ignore_errors=True)


def _name(directory: Path) -> str:
    return str(directory.absolute())
