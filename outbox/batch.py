"""One batch on its way into the own outbox: checked against the head, and indexed.

Both stores use it, so a batch that would break the chain for every reader is refused before it is written.
"""

from collections.abc import Sequence

import msgspec

from outbox.chain import Checkpoint, Entry, Head, extend
from outbox.envelope import decode_header
from outbox.errors import BrokenChain, InvalidEvent, InvalidId, StorageFailed
from outbox.ids import EventId, event_id
from outbox.records import Identity


class IndexedEntry(msgspec.Struct, frozen=True):
    """An entry and what its header says for look-ups."""

    entry: Entry
    event: EventId
    attempt: int
    kind: str
    corr: EventId | None


def check_batch(
    identity: Identity, head: Head, entries: Sequence[Entry], checkpoint: Checkpoint
) -> list[IndexedEntry]:
    """The entries with their index, when they follow ``head`` and end in this checkpoint of this outbox.

    The signature is not looked at: whoever appends has just made it. Raises StorageFailed.
    """
    if not entries:
        raise StorageFailed("a batch without entries")
    if (checkpoint.mesh, checkpoint.node) != (identity.mesh, identity.node):
        raise StorageFailed(f"the checkpoint is of {checkpoint.node}, not of {identity.node}")
    try:
        reached = extend(head, entries)
    except BrokenChain as error:
        raise StorageFailed(f"the batch does not follow the head: {error}") from None
    if reached != checkpoint.head:
        raise StorageFailed(f"the batch ends at {reached.seq} and does not hash to its checkpoint")
    return [_indexed(entry) for entry in entries]


def batch_bytes(entries: Sequence[Entry]) -> int:
    """What the entries weigh in a page."""
    return sum(len(entry.header) + len(entry.body) for entry in entries)


def _indexed(entry: Entry) -> IndexedEntry:
    try:
        header = decode_header(entry.header)
        event_id(header.event_id)
        if header.corr_id is not None:
            event_id(header.corr_id)
    except (InvalidEvent, InvalidId) as error:
        raise StorageFailed(f"entry {entry.seq} has no readable header: {error}") from None
    return IndexedEntry(entry, header.event_id, header.attempt, header.kind, header.corr_id)
