"""A file of the lake: rows of consecutive entries of one outbox, and the signed checkpoint that they end in.

It is written beside its place, synced, renamed, and its directory synced; an object store puts it in place
as a whole. Beside such files lie notes: what a node has signed that is no entry.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gateway.crashpoint import CrashPoint, crashpoint
from outbox.chain import Checkpoint, Verify, check_signature
from outbox.errors import BadCheckpoint
from outbox.forks import ForkProof, proves_fork
from outbox.ids import NodeId, Seq
from outbox.replacing import replace_file, sync_directory
from spark.errors import LakeDamaged
from spark.layout import proof_seq, stream_of
from spark.objects import LakePath, ObjectPath, parquet_of
from spark.schema import COLUMNS, EventRow, arrow_schema
from spark.spans import Span

_CHECKPOINT = b"mesh.checkpoint"
RESTORE = "move the file away: the next collect reads its entries again"

_REQUIRED = {column.name for column in COLUMNS if not column.nullable}
"""Columns that every file has; optional ones came later, and older files lack them."""


def table_of(checkpoint: Checkpoint, rows: Sequence[EventRow]) -> pa.Table:
    """The rows of consecutive entries that end in this checkpoint."""
    table = pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema=arrow_schema())
    return table.replace_schema_metadata({_CHECKPOINT: msgspec.json.encode(checkpoint)})


def write_table(path: LakePath, table: pa.Table) -> None:
    """Put a file in place; on disk when this returns. Raises OSError, LakeUnreachable."""
    if isinstance(path, ObjectPath):
        content = pa.BufferOutputStream()
        _write_parquet(table, content)
        path.put(content.getvalue())
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for left_over in path.parent.glob(".*.tmp"):
        left_over.unlink()
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        _write_parquet(table, file)
        file.flush()
        os.fsync(file.fileno())
    crashpoint(CrashPoint.COLLECT_AFTER_TMP)
    temporary.rename(path)
    crashpoint(CrashPoint.COLLECT_AFTER_RENAME)
    _sync_directories(path.parent)


def _write_parquet(table: pa.Table, file: BinaryIO | pa.NativeFile) -> None:
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def write_note(path: LakePath, said: Checkpoint | ForkProof) -> None:
    """Put a note in place; on disk when this returns. Raises OSError, LakeUnreachable."""
    if isinstance(path, ObjectPath):
        path.put(msgspec.json.encode(said))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(said))
    _sync_directories(path.parent)


def _sync_directories(directory: Path) -> None:
    """Make new names durable: the file's and those of directories just made (node, version, table)."""
    for place in (directory, *list(directory.parents)[:4]):
        sync_directory(place)


def checkpoint_of(path: LakePath) -> Checkpoint:
    """What a file ends in. Raises LakeDamaged."""
    try:
        metadata = pq.read_schema(parquet_of(path)).metadata or {}
        return msgspec.json.decode(metadata[_CHECKPOINT], type=Checkpoint)
    except (pa.ArrowException, OSError, KeyError, msgspec.MsgspecError) as error:
        raise LakeDamaged(f"{path} cannot be read: {_first_line(error)}", hint=RESTORE) from None


def digests_of(path: LakePath) -> dict[Seq, int]:
    """The digests of a file's entries. Raises LakeDamaged."""
    try:
        table = pq.read_table(parquet_of(path), partitioning=None, columns=["seq", "digest"])
    except (pa.ArrowException, OSError) as error:
        raise LakeDamaged(f"{path} cannot be read: {_first_line(error)}", hint=RESTORE) from None
    return dict(zip(*(table[name].to_pylist() for name in ("seq", "digest")), strict=True))


def problem_of(path: LakePath, span: Span, key_of: Callable[[NodeId], Verify | None]) -> str | None:
    """What is wrong with a file; None when nothing is. Without a key the signature is not looked at."""
    try:
        checkpoint = checkpoint_of(path)
        table = pq.read_table(parquet_of(path), partitioning=None, page_checksum_verification=True)
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


def proof_problem(path: LakePath, key_of: Callable[[NodeId], Verify | None]) -> str | None:
    """What is wrong with a proof that a node has signed two histories; None when nothing is."""
    try:
        proof = msgspec.json.decode(path.read_bytes(), type=ForkProof)
    except (OSError, msgspec.MsgspecError) as error:
        return _first_line(error)
    known = proof.known
    if ((known.node, known.epoch), known.seq) != (stream_of(path.parent), proof_seq(path.name)):
        return "it is about another place than its name says"
    verify = key_of(known.node)
    if verify is not None and not proves_fork(proof, known.mesh, known.node, verify):
        return "it proves nothing"
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
