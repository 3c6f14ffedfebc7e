"""Reads a lake into Spark: exactly the files that count, with the schema given."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from outbox.ids import Epoch, NodeId
from spark.errors import LakeEmpty
from spark.forks import Proof
from spark.layout import (
    EVENTS,
    FORGOTTEN,
    FORKS,
    PROOFS_GLOB,
    STREAMS_GLOB,
    covering,
    proof_seq,
    stream_dir,
    stream_of,
)
from spark.limits import CONDITIONS_MAX
from spark.schema import nothing, spark_schema
from spark.spans import Span, overlaps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Copies(msgspec.Struct, frozen=True):
    """Places of one epoch of an outbox that were collected more than once, and the files that hold them."""

    node: NodeId
    epoch: Epoch
    places: tuple[Span, ...]
    paths: tuple[Path, ...]


class Forgotten(msgspec.Struct, frozen=True):
    """What a node had forgotten of an epoch of its outbox before it was collected."""

    node: NodeId
    epoch: Epoch
    places: tuple[Span, ...]

    @property
    def entries(self) -> int:
        """How many."""
        return sum(place.last - place.first + 1 for place in self.places)


class EventFiles(msgspec.Struct, frozen=True):
    """The files of a lake that a job reads."""

    paths: tuple[Path, ...]
    bytes: int
    nodes: tuple[NodeId, ...]
    """Whose outboxes they are."""
    copies: tuple[Copies, ...]
    forgotten: tuple[Forgotten, ...] = ()
    proofs: tuple[Proof, ...] = ()


def event_files(lake: Path) -> EventFiles:
    """List them, leaving out what other files cover. Raises LakeEmpty."""
    streams = sorted((lake / EVENTS).glob(STREAMS_GLOB))
    held = {directory: _spans(directory) for directory in streams}
    paths = tuple(directory / span.file_name for directory, spans in held.items() for span in spans)
    if not paths:
        raise LakeEmpty(f"{lake} holds no events", hint=f"fill it first: gateway collect --lake {lake}")
    proofs = tuple(_proofs(lake))
    return EventFiles(
        paths,
        sum(path.stat().st_size for path in paths),
        tuple(sorted({stream[0] for directory in streams if (stream := stream_of(directory))})),
        tuple(_copies(lake, held, proofs)),
        tuple(_forgotten(lake)),
        proofs,
    )


def _spans(directory: Path) -> list[Span]:
    return covering(path.name for path in directory.glob("seq-*.parquet"))


def _forgotten(lake: Path) -> Iterator[Forgotten]:
    for directory in sorted((lake / FORGOTTEN).glob(STREAMS_GLOB)):
        stream = stream_of(directory)
        places = covering(path.name for path in directory.glob("seq-*.json"))
        if stream is not None and places:
            yield Forgotten(*stream, tuple(places))


def _proofs(lake: Path) -> Iterator[Proof]:
    for path in sorted((lake / FORKS).glob(f"{STREAMS_GLOB}/{PROOFS_GLOB}")):
        stream, seq = stream_of(path.parent), proof_seq(path.name)
        if stream is not None and seq is not None:
            yield Proof(*stream, seq)


def _copies(lake: Path, held: dict[Path, list[Span]], proofs: Iterable[Proof]) -> Iterator[Copies]:
    """Where files overlap, and where a proof says that there is another history of what is here."""
    for directory, spans in held.items():
        stream = stream_of(directory)
        assert stream is not None, "the glob found it by its name"
        forks = lake / FORKS / stream_dir(*stream)
        others = _spans(forks)
        proven = [Span(proof.seq, proof.seq) for proof in proofs if (proof.node, proof.epoch) == stream]
        places = [*overlaps([*spans, *others]), *proven]
        paths = [
            place / span.file_name
            for place, found in ((directory, spans), (forks, others))
            for span in found
            if any(span.first <= twice.last and twice.first <= span.last for twice in places)
        ]
        if paths:
            yield Copies(*stream, tuple(sorted(places)), tuple(paths))


def read_events(spark: "SparkSession", files: EventFiles) -> "DataFrame":
    """The rows of these files.

    Given one by one and with the schema: nothing is inferred from names (a node may be called ``007``), and a
    file that appears meanwhile is for the next run.
    """
    return _read(spark, files.paths)


def read_copies(spark: "SparkSession", files: EventFiles) -> "DataFrame":
    """The rows at places that were collected more than once; none when no file overlaps another."""
    paths = [path for copies in files.copies for path in copies.paths]
    if not paths:
        return nothing(spark, spark_schema())
    return _read(spark, paths).where(" or ".join(_within(copies) for copies in files.copies))


def _read(spark: "SparkSession", paths: Iterable[Path]) -> "DataFrame":
    return spark.read.schema(spark_schema()).parquet(*(str(path) for path in paths))


def _within(copies: Copies) -> str:
    places = copies.places
    if len(places) > CONDITIONS_MAX:  # one wide range: more rows are looked at, none is missed
        places = (Span(places[0].first, max(place.last for place in places)),)
    ranges = " or ".join(f"seq between {place.first} and {place.last}" for place in places)
    return f"(sourceNodeId = '{copies.node}' and epoch = '{copies.epoch}' and ({ranges}))"
