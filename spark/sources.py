"""Reads a lake into Spark: exactly the files that count, with the schema given."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark.errors import LakeEmpty
from spark.layout import EVENTS, STREAMS_GLOB, covering
from spark.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EventFiles(msgspec.Struct, frozen=True):
    """The files of a lake that a job reads."""

    paths: tuple[Path, ...]
    bytes: int


def event_files(lake: Path) -> EventFiles:
    """List them, leaving out what other files cover. Raises LakeEmpty."""
    paths = tuple(
        directory / span.file_name
        for directory in sorted((lake / EVENTS).glob(STREAMS_GLOB))
        for span in covering(path.name for path in directory.glob("seq-*.parquet"))
    )
    if not paths:
        raise LakeEmpty(f"{lake} holds no events", hint=f"fill it first: gateway collect --lake {lake}")
    return EventFiles(paths, sum(path.stat().st_size for path in paths))


def read_events(spark: "SparkSession", files: EventFiles) -> "DataFrame":
    """The rows of these files.

    Given one by one and with the schema: nothing is inferred from names (a node may be called ``007``), and a
    file that appears meanwhile is for the next run.
    """
    return spark.read.schema(spark_schema()).parquet(*(str(path) for path in files.paths))
