"""The journal's tables, as migrations.

A position is one INTEGER key, ``epoch ordinal << 40 | seq``: the primary key is then the order of the stream,
and reading from a cursor is one walk along a tree. Event ids are 16-byte BLOBs, times are
milliseconds since 1970.

``received`` and ``quarantined`` keep their ``arrival``: "in order of acceptance" must not depend on a clock.

Each version has its file in ``outbox.migrations``; a released one is never edited.
"""

from outbox.ids import Epoch, Seq, epoch_ordinal
from outbox.limits import SEQ_MAX
from outbox.migrations import (
    v1_journal,
    v2_ledger_by_source,
    v3_epochs,
    v4_retention,
    v5_copies,
    v6_recipients,
    v7_via,
    v8_blobs,
    v9_given_reply,
    v10_ledger_floors,
    v11_lapses,
    v12_fewer_pages,
    v13_promises,
    v14_errands,
    v15_changes,
    v16_ended_by,
)

COMPONENT = "journal"

_SEQ_BITS = SEQ_MAX.bit_length()


def position(epoch: Epoch, seq: Seq) -> int:
    """The key of a place in the stream."""
    return epoch_ordinal(epoch) << _SEQ_BITS | seq


def copied(number: int, seq: Seq) -> int:
    """The key of a place in a copy."""
    return number << _SEQ_BITS | seq


def seq_of(key: int) -> Seq:
    """The seq within the epoch of a key."""
    return Seq(key & ((1 << _SEQ_BITS) - 1))


def ordinal_of(key: int) -> int:
    """The ordinal of the epoch of a key."""
    return key >> _SEQ_BITS


MIGRATIONS = (
    v1_journal.STEP,
    v2_ledger_by_source.STEP,
    v3_epochs.STEP,
    v4_retention.STEP,
    v5_copies.STEP,
    v6_recipients.STEP,
    v7_via.STEP,
    v8_blobs.STEP,
    v9_given_reply.STEP,
    v10_ledger_floors.STEP,
    v11_lapses.STEP,
    v12_fewer_pages.STEP,
    v13_promises.STEP,
    v14_errands.STEP,
    v15_changes.STEP,
    v16_ended_by.STEP,
)
