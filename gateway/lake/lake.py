"""The lake: collected outboxes as Parquet files whose names say how far collecting came.

A file is written beside its place, synced, renamed and its directory synced. Nothing else is committed
anywhere, so a crash at any step repeats a page and changes nothing. In an object store a file is there as a
whole or not at all (``spark.objects``). Each file carries the signed checkpoint
that it ends in: the next page must follow on from it, and anybody with the node's key can check it again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gateway.lake.files import (
    RESTORE,
    checkpoint_of,
    digests_of,
    problem_of,
    proof_problem,
    table_of,
    write_note,
    write_table,
)
from outbox.chain import Checkpoint, Head, Verify
from outbox.errors import StorageFailed
from outbox.forks import ForkProof
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.records import Identity, Quarantined
from spark.errors import LakeBusy, LakeDamaged
from spark.layout import (
    EVENTS,
    FORGOTTEN,
    FORKS,
    PROOFS_GLOB,
    QUARANTINE,
    STREAMS_GLOB,
    covering,
    proof_name,
    span_of,
    stream_dir,
    stream_of,
)
from spark.limits import COMPACT_ROWS_MAX
from spark.objects import LakePath, matching, parquet_of
from spark.schema import EventRow, arrow_schema
from spark.spans import Span, without

_QUARANTINE_SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("header", pa.binary(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)


class Fault(msgspec.Struct, frozen=True):
    """One thing that ``Lake.verify`` found wrong."""

    path: str
    problem: str


class Verified(msgspec.Struct, frozen=True):
    """What ``Lake.verify`` saw."""

    files: int
    rows: int
    faults: tuple[Fault, ...]


class Compacted(msgspec.Struct, frozen=True):
    """What ``Lake.compact`` did."""

    written: int
    removed: int
    """Files that others cover."""


class Lake:
    """One directory of collected events. One writer at a time (``lock``), any number of readers."""

    def __init__(self, root: LakePath) -> None:
        self.root = root

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lake for writing; in an object store nothing is held. Raises LakeBusy, StorageFailed."""
        if not isinstance(self.root, Path):
            yield
            return
        with disk_errors():
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._claim(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _claim(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeBusy(f"another process is collecting into {self.root}", hint="wait for it") from None

    def cursor(self, mesh: MeshId, node: NodeId) -> Head | None:
        """How far this outbox is collected, in its latest epoch; None when nothing is. Raises LakeDamaged."""
        ends = self.ends(mesh, node)
        return ends[-1] if ends else None

    def ends(self, mesh: MeshId, node: NodeId) -> list[Head]:
        """How far each epoch of this outbox is collected, oldest first. Raises LakeDamaged."""
        return [self.end(mesh, (node, epoch), spans[-1]) for epoch, spans in self.held(node).items()]

    def held(self, node: NodeId) -> dict[Epoch, list[Span]]:
        """What the files of each epoch of this outbox hold, oldest first."""
        directories = matching((self.root / EVENTS / stream_dir(node, Epoch("*"))).parent, "epoch=*")
        found = ((stream_of(directory), _spans(directory)) for directory in directories)
        return {stream[1]: spans for stream, spans in found if stream is not None and spans}

    def end(self, mesh: MeshId, stream: tuple[NodeId, Epoch], span: Span) -> Head:
        """The head at the end of a file. Raises LakeDamaged."""
        return _end_of(self.root / EVENTS / stream_dir(*stream), span, mesh)

    def forgotten(self, stream: tuple[NodeId, Epoch]) -> list[Span]:
        """What its writer has signed away of an epoch, in order."""
        return covering(
            path.name for path in (self.root / FORGOTTEN / stream_dir(*stream)).glob("seq-*.json")
        )

    def has_other(self, stream: Identity) -> bool:
        """Whether entries of a second history of an epoch are kept."""
        return bool(_spans(self._stream(FORKS, stream)))

    def commit(
        self, stream: Identity, checkpoint: Checkpoint, rows: Sequence[EventRow], bad: Sequence[Quarantined]
    ) -> LakePath:
        """Add the rows of consecutive entries that end in this checkpoint. Raises StorageFailed.

        The quarantine goes first: once the rows are there nobody reads these entries again.
        """
        span = Span(Seq(rows[0].seq), checkpoint.seq)
        with disk_errors():
            if bad:
                write_table(self._stream(QUARANTINE, stream) / span.file_name, _quarantine_table(bad))
            path = self._stream(EVENTS, stream) / span.file_name
            write_table(path, table_of(checkpoint, rows))
        return path

    def heads(self, stream: Identity) -> list[Head]:
        """The places where files of an epoch end, in order. Raises LakeDamaged."""
        directory = self._stream(EVENTS, stream)
        return [checkpoint_of(directory / span.file_name).head for span in _spans(directory)]

    def digests(self, stream: Identity, first: Seq, last: Seq) -> dict[Seq, int]:
        """Of these entries the digests, as far as they are here. Raises LakeDamaged."""
        directory, found = self._stream(EVENTS, stream), dict[Seq, int]()
        for span in _spans(directory):
            if span.last < first or span.first > last:
                continue
            found.update(digests_of(directory / span.file_name))
        return found

    def commit_fork(self, stream: Identity, checkpoint: Checkpoint, rows: Sequence[EventRow]) -> None:
        """Keep what a node has signed besides what is here of it. Raises StorageFailed."""
        with disk_errors():
            path = self._stream(FORKS, stream) / Span(Seq(rows[0].seq), checkpoint.seq).file_name
            write_table(path, table_of(checkpoint, rows))

    def note_forgotten(self, stream: Identity, first: Seq, floor: Checkpoint) -> None:
        """Its writer has forgotten entries from ``first`` to its signed ``floor``. Raises StorageFailed."""
        with disk_errors():
            write_note(self._stream(FORGOTTEN, stream) / Span(first, floor.seq).note_name, floor)

    def has_proof(self, proof: ForkProof) -> bool:
        """Whether it is kept, or another one of the same fork."""
        return any(self._proof(proof).parent.glob(PROOFS_GLOB))

    def note_fork(self, proof: ForkProof) -> None:
        """A node has provably signed two histories. Raises StorageFailed."""
        with disk_errors():
            write_note(self._proof(proof), proof)

    def compact(self, stream: tuple[NodeId, Epoch]) -> Compacted:
        """Write one file in place of many small ones that follow on from each other, then remove those.

        Readers take the file that covers others, so a crash between the steps shows nobody anything twice;
        what it left is removed by the next run. Raises LakeBusy, LakeDamaged, StorageFailed.
        """
        directory = self.root / EVENTS / stream_dir(*stream)
        with self.lock(), disk_errors():
            removed = _remove_covered(directory)
            runs = [run for run in _runs(_spans(directory)) if len(run) > 1]
            for run in runs:
                _join([directory / span.file_name for span in run], directory / _whole(run).file_name)
                removed += _remove_covered(directory)
        return Compacted(written=len(runs), removed=removed)

    def streams(self) -> list[tuple[NodeId, Epoch]]:
        """The epochs of outboxes that there are files of."""
        found = (stream_of(directory) for directory in matching(self.root / EVENTS, STREAMS_GLOB))
        return [stream for stream in found if stream is not None]

    def verify(self, key_of: Callable[[NodeId], Verify | None]) -> Verified:
        """Read every file again: checksums, names, order, holes, and signatures where a key is known."""
        files, rows = 0, 0
        faults: list[Fault] = []
        for directory in matching(self.root / EVENTS, STREAMS_GLOB):
            stream = stream_of(directory)
            due, forgotten = Seq(1), self.forgotten(stream) if stream else []
            for span in _spans(directory):
                path = directory / span.file_name
                problem = problem_of(path, span, key_of) or _gap(span, due, forgotten)
                if problem:
                    faults.append(Fault(_within(path, self.root), problem))
                files, rows, due = files + 1, rows + span.last - span.first + 1, Seq(span.last + 1)
        proofs = matching(self.root / FORKS, f"{STREAMS_GLOB}/{PROOFS_GLOB}")
        found = ((path, proof_problem(path, key_of)) for path in proofs)
        faults += [Fault(_within(path, self.root), problem) for path, problem in found if problem]
        return Verified(files, rows, tuple(faults))

    def _proof(self, proof: ForkProof) -> LakePath:
        known = proof.known
        return self.root / FORKS / stream_dir(known.node, known.epoch) / proof_name(known.seq)

    def _stream(self, table: str, stream: Identity) -> LakePath:
        return self.root / table / stream_dir(stream.node, stream.epoch)


def _within(path: LakePath, root: LakePath) -> str:
    return "/".join(path.parts[len(root.parts) :])


def _end_of(directory: LakePath, last: Span, mesh: MeshId) -> Head:
    path = directory / last.file_name
    checkpoint = checkpoint_of(path)
    here = (mesh, stream_of(directory), last.last)
    if (checkpoint.mesh, (checkpoint.node, checkpoint.epoch), checkpoint.seq) != here:
        raise LakeDamaged(f"{path} ends in a checkpoint of another stream or place", hint=RESTORE)
    return checkpoint.head


def _spans(directory: LakePath) -> list[Span]:
    return covering(path.name for path in directory.glob("seq-*.parquet"))


def _runs(spans: list[Span]) -> list[list[Span]]:
    """Files that follow on from each other without a hole, as many together as make one large file."""
    runs: list[list[Span]] = []
    for span in spans:
        run = runs[-1] if runs else None
        fits = run is not None and span.last - run[0].first < COMPACT_ROWS_MAX
        if run is not None and fits and span.first <= run[-1].last + 1:
            run.append(span)
        else:
            runs.append([span])
    return runs


def _whole(run: list[Span]) -> Span:
    return Span(run[0].first, run[-1].last)


def _join(parts: list[LakePath], path: LakePath) -> None:
    """One file with the rows of all, each entry once, that ends in the checkpoint of the last."""
    tables, due = [arrow_schema().empty_table()], 0  # older parts lack columns that came later
    for part in parts:
        span = span_of(part.name)
        assert span is not None, "spans were made from names"
        problem = problem_of(part, span, lambda _: None)
        if problem:
            raise LakeDamaged(f"{part}: {problem}", hint=RESTORE)
        table = pq.read_table(parquet_of(part), partitioning=None)
        tables.append(table.slice(max(0, due - span.first)).select(table.schema.names))
        due = span.last + 1
    rows = pa.concat_tables(tables, promote_options="default").select(arrow_schema().names)
    write_table(path, rows.replace_schema_metadata(pq.read_schema(parquet_of(parts[-1])).metadata))


def _remove_covered(directory: LakePath) -> int:
    kept = {span.file_name for span in _spans(directory)}
    covered = [
        path for path in directory.glob("seq-*.parquet") if span_of(path.name) and path.name not in kept
    ]
    for path in covered:
        path.unlink()
    return len(covered)


def _quarantine_table(bad: Sequence[Quarantined]) -> pa.Table:
    columns = {
        "seq": [entry.seq for entry in bad],
        "reason": [entry.reason for entry in bad],
        "header": [entry.header for entry in bad],
        "body": [entry.body for entry in bad],
    }
    return pa.table(columns, schema=_QUARANTINE_SCHEMA)


def _gap(span: Span, due: Seq, forgotten: Sequence[Span]) -> str | None:
    missing = list(without(Span(due, Seq(span.first - 1)), forgotten)) if span.first > due else []
    return f"entries {missing[0].first} to {missing[-1].last} are missing before it" if missing else None


@contextmanager
def disk_errors() -> Iterator[None]:
    """What the disk refuses, as StorageFailed."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"the lake cannot be written: {error}", hint="is the disk full?") from error
