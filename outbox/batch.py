"""One batch on its way into the own outbox: entries with what their headers say, hashed and signed once.

Whoever appends seals. Both stores take nothing else, so that what is written follows on by construction, and
look only at whether it follows on *their* head: hashing it once more would tell what is known.
"""

from collections.abc import Sequence

import msgspec

from outbox.chain import Checkpoint, Entry, Head, Sign, extend, sign_checkpoint
from outbox.envelope import Header
from outbox.errors import BrokenChain, StorageFailed
from outbox.records import Identity


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An entry that nobody vouches for yet, and its header as it was before it became bytes."""

    entry: Entry
    header: Header


class SealedBatch(msgspec.Struct, frozen=True):
    """Entries that follow on a head, under a checkpoint; made by ``seal`` alone."""

    before: Head
    drafts: tuple[Draft, ...]
    entries: tuple[Entry, ...]
    """What travels."""
    checkpoint: Checkpoint
    bytes: int
    """What the entries weigh in a page."""


def seal(identity: Identity, head: Head, drafts: Sequence[Draft], sign: Sign) -> SealedBatch:
    """Vouch for what follows on a head with the node's key.

    Raises StorageFailed for no entries, and for ones that stand elsewhere.
    """
    if not drafts:
        raise StorageFailed("a batch without entries")
    entries = tuple([draft.entry for draft in drafts])
    try:
        reached = extend(head, entries)
    except BrokenChain as error:
        raise StorageFailed(f"the batch does not follow the head: {error}") from None
    checkpoint = sign_checkpoint(identity.mesh, identity.node, reached, sign)
    return SealedBatch(head, tuple(drafts), entries, checkpoint, batch_bytes(entries))


def check_place(batch: SealedBatch, identity: Identity, head: Head) -> None:
    """Raises StorageFailed unless the batch is this node's and follows on this head of its outbox."""
    if (batch.checkpoint.mesh, batch.checkpoint.node) != (identity.mesh, identity.node):
        raise StorageFailed(f"the checkpoint is of {batch.checkpoint.node}, not of {identity.node}")
    if batch.before != head:
        raise StorageFailed(f"the batch does not follow the head: it begins at {batch.before.seq}")


def batch_bytes(entries: Sequence[Entry]) -> int:
    """What the entries weigh in a page."""
    return sum([len(entry.header) + len(entry.body) for entry in entries])
