"""Where a lake keeps what: names only, no disk.

::

    events/v=1/sourceNodeId=<node>/epoch=<epoch>/seq-<first>-<last>.parquet
    quarantine/v=1/sourceNodeId=<node>/epoch=<epoch>/seq-<first>-<last>.parquet
    forks/v=1/sourceNodeId=<node>/epoch=<epoch>/seq-<first>-<last>.parquet
    forks/v=1/sourceNodeId=<node>/epoch=<epoch>/proof-<seq>.json
    forgotten/v=1/sourceNodeId=<node>/epoch=<epoch>/seq-<first>-<last>.json

The file name is the cursor: a file holds exactly the entries ``first`` … ``last``, and the next page begins
after the largest ``last``. No second place says how far a collector came, so nothing can disagree with the
data. A file whose range lies inside another's is *covered* and is not read: whoever repeats a page with more
entries, or writes a larger file in place of small ones, can crash between the two steps.

Version 1 since 2026-11.
"""

import re
from collections.abc import Iterable
from typing import Protocol

from outbox.ids import Epoch, NodeId, Seq
from spark.schema import SCHEMA_VERSION
from spark.spans import Span

EVENTS = f"events/v={SCHEMA_VERSION}"
QUARANTINE = f"quarantine/v={SCHEMA_VERSION}"
FORKS = f"forks/v={SCHEMA_VERSION}"
"""Entries that a node has signed and that differ from those in ``EVENTS``, and proofs that there are such."""
FORGOTTEN = f"forgotten/v={SCHEMA_VERSION}"
"""Notes of what a node had forgotten before it was collected; each is its signed checkpoint at ``last``."""
STREAMS_GLOB = "sourceNodeId=*/epoch=*"
PROOFS_GLOB = "proof-*.json"

_NAME = re.compile(r"seq-(\d{12,})-(\d{12,})\.(?:parquet|json)", re.ASCII)
_PROOF = re.compile(r"proof-(\d{12,})\.json", re.ASCII)
_STREAM = re.compile(r"sourceNodeId=([^/]+)/epoch=([^/]+)", re.ASCII)


def stream_dir(node: NodeId, epoch: Epoch) -> str:
    """The directory of one outbox's epoch, below ``EVENTS`` or ``QUARANTINE``."""
    return f"sourceNodeId={node}/epoch={epoch}"


class Placed(Protocol):
    """A path, of whatever kind."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Its names."""
        ...


def stream_of(directory: Placed) -> tuple[NodeId, Epoch] | None:
    """Whose directory it is; None when the name is not one of ours."""
    match = _STREAM.fullmatch("/".join(directory.parts[-2:]))
    return (NodeId(match[1]), Epoch(match[2])) if match else None


def span_of(file_name: str) -> Span | None:
    """What a file of that name holds; None when the name is not one of ours."""
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    span = Span(Seq(int(match[1])), Seq(int(match[2])))
    return span if 1 <= span.first <= span.last else None


def proof_name(seq: Seq) -> str:
    """The file of a proof that two histories differ at this place."""
    return f"proof-{seq:012d}.json"


def proof_seq(file_name: str) -> Seq | None:
    """The place that a file of that name is about; None when the name is not one of ours."""
    match = _PROOF.fullmatch(file_name)
    return Seq(int(match[1])) if match and int(match[1]) else None


def covering(file_names: Iterable[str]) -> list[Span]:
    """The files of one directory to read, in order: those that no other file covers."""
    spans = {span for name in file_names if (span := span_of(name))}
    chosen: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.last)):
        if not chosen or span.last > chosen[-1].last:
            chosen.append(span)
    return chosen
