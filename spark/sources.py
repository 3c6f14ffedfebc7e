"""Reads a lake into Spark: exactly the files that count, with the schema given."""

from collections.abc import Iterable, Iterator, Mapping
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
    span_of,
    stream_dir,
    stream_of,
)
from spark.limits import CONDITIONS_MAX
from spark.objects import LakePath, matching, size_of, spark_name
from spark.schema import nothing, spark_schema
from spark.spans import Span, overlaps, without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Copies(msgspec.Struct, frozen=True):
    """Places of one epoch of an outbox that were collected more than once, and the files that hold them."""

    node: NodeId
    epoch: Epoch
    places: tuple[Span, ...]
    paths: tuple[LakePath, ...]


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

    paths: tuple[LakePath, ...]
    bytes: int
    nodes: tuple[NodeId, ...]
    """Whose outboxes they are."""
    copies: tuple[Copies, ...]
    forgotten: tuple[Forgotten, ...] = ()
    proofs: tuple[Proof, ...] = ()


def event_files(lake: LakePath) -> EventFiles:
    """List them, leaving out what other files cover. Raises LakeEmpty, LakeUnreachable."""
    streams = matching(lake / EVENTS, STREAMS_GLOB)
    held = {directory: _held(directory) for directory in streams}
    paths = tuple(path for found in held.values() for path in found.values())
    if not paths:
        raise LakeEmpty(f"{lake} holds no events", hint=f"fill it first: gateway collect --lake {lake}")
    proofs = tuple(_proofs(lake))
    return EventFiles(
        paths,
        sum(map(size_of, paths)),
        tuple(sorted({stream[0] for directory in streams if (stream := stream_of(directory))})),
        tuple(_copies(lake, held, proofs)),
        tuple(_forgotten(lake, held)),
        proofs,
    )


def _held(directory: LakePath) -> dict[Span, LakePath]:
    """The files of a directory that count, in order; each as its listing told it, with its size."""
    found = {span_of(path.name): path for path in directory.glob("seq-*.parquet")}
    return {span: found[span] for span in covering(path.name for path in found.values())}


def _forgotten(lake: LakePath, held: Mapping[LakePath, Mapping[Span, LakePath]]) -> Iterator[Forgotten]:
    """What is not here: a note may reach over entries that a peer still had."""
    here = {stream_of(directory): list(spans) for directory, spans in held.items()}
    for directory in matching(lake / FORGOTTEN, STREAMS_GLOB):
        stream = stream_of(directory)
        noted = covering(path.name for path in directory.glob("seq-*.json"))
        places = [rest for place in noted for rest in without(place, here.get(stream, ()))]
        if stream is not None and places:
            yield Forgotten(*stream, tuple(places))


def _proofs(lake: LakePath) -> Iterator[Proof]:
    for path in matching(lake / FORKS, f"{STREAMS_GLOB}/{PROOFS_GLOB}"):
        stream, seq = stream_of(path.parent), proof_seq(path.name)
        if stream is not None and seq is not None:
            yield Proof(*stream, seq)


def _copies(
    lake: LakePath, held: Mapping[LakePath, Mapping[Span, LakePath]], proofs: Iterable[Proof]
) -> Iterator[Copies]:
    """Where files overlap, and where a proof says that there is another history of what is here."""
    for directory, spans in held.items():
        stream = stream_of(directory)
        assert stream is not None, "the glob found it by its name"
        others = _held(lake / FORKS / stream_dir(*stream))
        proven = [Span(proof.seq, proof.seq) for proof in proofs if (proof.node, proof.epoch) == stream]
        places = [*overlaps([*spans, *others]), *proven]
        paths = [
            path
            for found in (spans, others)
            for span, path in found.items()
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


def _read(spark: "SparkSession", paths: Iterable[LakePath]) -> "DataFrame":
    return spark.read.schema(spark_schema()).parquet(*map(spark_name, paths))


def _within(copies: Copies) -> str:
    places = copies.places
    if len(places) > CONDITIONS_MAX:  # one wide range: more rows are looked at, none is missed
        places = (Span(places[0].first, max(place.last for place in places)),)
    ranges = " or ".join(f"seq between {place.first} and {place.last}" for place in places)
    return f"(sourceNodeId = '{copies.node}' and epoch = '{copies.epoch}' and ({ranges}))"
