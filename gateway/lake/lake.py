"""The lake: collected outboxes as Parquet files whose names say how far collecting came.

A file is written beside its place, synced, renamed and its directory synced. Nothing else is committed
anywhere, so a crash at any step repeats a page and changes nothing. Each file carries the signed checkpoint
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

from gateway.crashpoint import CrashPoint, crashpoint
from outbox.chain import Checkpoint, Head, Verify, check_signature
from outbox.errors import BadCheckpoint, StorageFailed
from outbox.ids import Epoch, MeshId, NodeId, Seq
from outbox.records import Identity, Quarantined
from outbox.replacing import replace_file, sync_directory
from spark.errors import LakeBusy, LakeDamaged
from spark.layout import (
    EVENTS,
    FORGOTTEN,
    FORKS,
    QUARANTINE,
    STREAMS_GLOB,
    covering,
    span_of,
    stream_dir,
    stream_of,
)
from spark.limits import COMPACT_ROWS_MAX
from spark.schema import COLUMNS, EventRow, arrow_schema
from spark.spans import Span, without

_CHECKPOINT = b"mesh.checkpoint"
_RESTORE = "move the file away: the next collect reads its entries again"

_REQUIRED = {column.name for column in COLUMNS if not column.nullable}
"""Columns that every file has; optional ones came later, and older files lack them."""

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

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lake for writing. Raises LakeBusy, StorageFailed."""
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
        directories = (self.root / EVENTS / stream_dir(node, Epoch("*"))).parent.glob("epoch=*")
        found = [(directory, spans) for directory in sorted(directories) if (spans := _spans(directory))]
        if not found:
            return None
        directory, spans = found[-1]
        path = directory / spans[-1].file_name
        checkpoint = _checkpoint_of(path)
        here = (mesh, stream_of(directory), spans[-1].last)
        if (checkpoint.mesh, (checkpoint.node, checkpoint.epoch), checkpoint.seq) != here:
            raise LakeDamaged(f"{path} ends in a checkpoint of another stream or place", hint=_RESTORE)
        return checkpoint.head

    def commit(
        self, stream: Identity, checkpoint: Checkpoint, rows: Sequence[EventRow], bad: Sequence[Quarantined]
    ) -> Path:
        """Add the rows of consecutive entries that end in this checkpoint. Raises StorageFailed.

        The quarantine goes first: once the rows are there nobody reads these entries again.
        """
        span = Span(Seq(rows[0].seq), checkpoint.seq)
        with disk_errors():
            if bad:
                _write(self._stream(QUARANTINE, stream) / span.file_name, _quarantine_table(bad))
            path = self._stream(EVENTS, stream) / span.file_name
            _write(path, _table(checkpoint, rows))
        return path

    def heads(self, stream: Identity) -> list[Head]:
        """The places where files of an epoch end, in order. Raises LakeDamaged."""
        directory = self._stream(EVENTS, stream)
        return [_checkpoint_of(directory / span.file_name).head for span in _spans(directory)]

    def digests(self, stream: Identity, first: Seq, last: Seq) -> dict[Seq, int]:
        """Of these entries the digests, as far as they are here. Raises LakeDamaged."""
        directory, found = self._stream(EVENTS, stream), dict[Seq, int]()
        for span in _spans(directory):
            if span.last < first or span.first > last:
                continue
            path = directory / span.file_name
            try:
                table = pq.read_table(path, partitioning=None, columns=["seq", "digest"])
            except (pa.ArrowException, OSError) as error:
                raise LakeDamaged(f"{path} cannot be read: {_first_line(error)}", hint=_RESTORE) from None
            found.update(zip(*(table[name].to_pylist() for name in ("seq", "digest")), strict=True))
        return found

    def commit_fork(self, stream: Identity, checkpoint: Checkpoint, rows: Sequence[EventRow]) -> None:
        """Keep what a node has signed besides what is here of it. Raises StorageFailed."""
        with disk_errors():
            path = self._stream(FORKS, stream) / Span(Seq(rows[0].seq), checkpoint.seq).file_name
            _write(path, _table(checkpoint, rows))

    def note_forgotten(self, stream: Identity, first: Seq, floor: Checkpoint) -> None:
        """Its writer has forgotten entries from ``first`` to its signed ``floor``. Raises StorageFailed."""
        path = self._stream(FORGOTTEN, stream) / Span(first, floor.seq).note_name
        with disk_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, msgspec.json.encode(floor))
            _sync_directories(path.parent)

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
        found = (stream_of(directory) for directory in sorted((self.root / EVENTS).glob(STREAMS_GLOB)))
        return [stream for stream in found if stream is not None]

    def verify(self, key_of: Callable[[NodeId], Verify | None]) -> Verified:
        """Read every file again: checksums, names, order, holes, and signatures where a key is known."""
        files, rows = 0, 0
        faults: list[Fault] = []
        for directory in sorted((self.root / EVENTS).glob(STREAMS_GLOB)):
            due, forgotten = Seq(1), self._forgotten(directory)
            for span in _spans(directory):
                path = directory / span.file_name
                problem = _problem(path, span, key_of) or _gap(span, due, forgotten)
                if problem:
                    faults.append(Fault(str(path.relative_to(self.root)), problem))
                files, rows, due = files + 1, rows + span.last - span.first + 1, Seq(span.last + 1)
        return Verified(files, rows, tuple(faults))

    def _forgotten(self, directory: Path) -> list[Span]:
        notes = self.root / FORGOTTEN / Path(*directory.parts[-2:])
        return covering(path.name for path in notes.glob("seq-*.json"))

    def _stream(self, table: str, stream: Identity) -> Path:
        return self.root / table / stream_dir(stream.node, stream.epoch)


def _spans(directory: Path) -> list[Span]:
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


def _join(parts: list[Path], path: Path) -> None:
    """One file with the rows of all, each entry once, that ends in the checkpoint of the last."""
    tables, due = [], 0
    for part in parts:
        span = span_of(part.name)
        assert span is not None, "spans were made from names"
        problem = _problem(part, span, lambda _: None)
        if problem:
            raise LakeDamaged(f"{part}: {problem}", hint=_RESTORE)
        table = pq.read_table(part, partitioning=None)
        tables.append(table.slice(max(0, due - span.first)).select(table.schema.names))
        due = span.last + 1
    rows = pa.concat_tables(tables, promote_options="default").select(arrow_schema().names)
    _write(path, rows.replace_schema_metadata(pq.read_schema(parts[-1]).metadata))


def _remove_covered(directory: Path) -> int:
    kept = {span.file_name for span in _spans(directory)}
    covered = [
        path for path in directory.glob("seq-*.parquet") if span_of(path.name) and path.name not in kept
    ]
    for path in covered:
        path.unlink()
    return len(covered)


def _table(checkpoint: Checkpoint, rows: Sequence[EventRow]) -> pa.Table:
    table = pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema=arrow_schema())
    return table.replace_schema_metadata({_CHECKPOINT: msgspec.json.encode(checkpoint)})


def _write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for left_over in path.parent.glob(".*.tmp"):
        left_over.unlink()
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        file.flush()
        os.fsync(file.fileno())
    crashpoint(CrashPoint.COLLECT_AFTER_TMP)
    temporary.rename(path)
    crashpoint(CrashPoint.COLLECT_AFTER_RENAME)
    _sync_directories(path.parent)


def _sync_directories(directory: Path) -> None:
    """Make new names durable: the file's and those of directories just made (node, version, table)."""
    for place in (directory, *list(directory.parents)[:4]):
        sync_directory(place)


def _quarantine_table(bad: Sequence[Quarantined]) -> pa.Table:
    columns = {
        "seq": [entry.seq for entry in bad],
        "reason": [entry.reason for entry in bad],
        "header": [entry.header for entry in bad],
        "body": [entry.body for entry in bad],
    }
    return pa.table(columns, schema=_QUARANTINE_SCHEMA)


def _checkpoint_of(path: Path) -> Checkpoint:
    try:
        metadata = pq.read_schema(path).metadata or {}
        return msgspec.json.decode(metadata[_CHECKPOINT], type=Checkpoint)
    except (pa.ArrowException, OSError, KeyError, msgspec.MsgspecError) as error:
        raise LakeDamaged(f"{path} cannot be read: {_first_line(error)}", hint=_RESTORE) from None


def _problem(path: Path, span: Span, key_of: Callable[[NodeId], Verify | None]) -> str | None:
    try:
        checkpoint = _checkpoint_of(path)
        table = pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (LakeDamaged, pa.ArrowException, OSError) as error:
        return _first_line(error)
    if not _REQUIRED <= set(table.schema.names) <= set(arrow_schema().names):
        return "it has other columns than this version knows"
    if table["seq"].to_pylist() != list(range(span.first, span.last + 1)):
        return "its rows are not the entries that its name promises"
    streams = set(zip(table["sourceNodeId"].to_pylist(), table["epoch"].to_pylist(), strict=True))
    if streams != {stream_of(path.parent)} or checkpoint.seq != span.last:
        return "it holds another stream than its directory says"
    return _bad_signature(checkpoint, key_of(checkpoint.node))


def _bad_signature(checkpoint: Checkpoint, verify: Verify | None) -> str | None:
    if verify is None:
        return None
    try:
        check_signature(checkpoint, checkpoint.mesh, checkpoint.node, verify)
    except BadCheckpoint as error:
        return str(error)
    return None


def _gap(span: Span, due: Seq, forgotten: Sequence[Span]) -> str | None:
    missing = list(without(Span(due, Seq(span.first - 1)), forgotten)) if span.first > due else []
    return f"entries {missing[0].first} to {missing[-1].last} are missing before it" if missing else None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@contextmanager
def disk_errors() -> Iterator[None]:
    """What the disk refuses, as StorageFailed."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"the lake cannot be written: {error}", hint="is the disk full?") from error
