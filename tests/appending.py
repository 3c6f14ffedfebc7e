"""How tests put entries of their own making into an outbox."""

from collections.abc import Iterable

from outbox.batch import Draft, SealedBatch, seal
from outbox.chain import Entry, Head, Sign
from outbox.envelope import decode_header
from outbox.records import Identity
from outbox.store import Store


def sealed(identity: Identity, head: Head, entries: Iterable[Entry], sign: Sign) -> SealedBatch:
    """One batch that follows on a head."""
    return seal(identity, head, [Draft(entry, decode_header(entry.header)) for entry in entries], sign)


def append(store: Store, entries: Iterable[Entry], sign: Sign) -> None:
    """One batch, in the transaction that is open."""
    store.append(sealed(store.identity(), store.head(), entries, sign))
