"""Turns that are accepted and wait for a blob, by the blob."""

from itertools import islice

from gateway.engine.turnkey import TurnKey
from outbox.blobref import BlobId, blob_of
from outbox.records import Received
from outbox.store import Store

WRONG_SIZE = "blob_wrong_size"
"""Why a turn fails whose event says another size than its blob has: then it means another content."""


class Awaited:
    """Keys of turns, oldest first."""

    def __init__(self) -> None:
        self._turns: dict[BlobId, dict[TurnKey, None]] = {}
        self._blob_of: dict[TurnKey, BlobId] = {}

    def __contains__(self, key: TurnKey) -> bool:
        return key in self._blob_of

    def add(self, blob: BlobId, key: TurnKey) -> None:
        """Let a turn wait."""
        self._turns.setdefault(blob, {})[key] = None
        self._blob_of[key] = blob

    def drop(self, key: TurnKey) -> None:
        """It waits no longer; one that does not wait is fine."""
        blob = self._blob_of.pop(key, None)
        if blob is not None:
            del self._turns[blob][key]
            if not self._turns[blob]:
                del self._turns[blob]

    def turns(self, blob: BlobId, most: int) -> list[TurnKey]:
        """The oldest that wait for a blob, at most so many."""
        return list(islice(self._turns.get(blob, ()), most))


def is_missing(store: Store, blob: BlobId | None) -> bool:
    """Whether a blob is named and not here."""
    return blob is not None and store.blob(blob) is None


def says_wrong_size(store: Store, row: Received) -> bool:
    """Whether the blob of a turn is here and is not what its event says."""
    here = store.blob(row.blob) if row.blob is not None else None
    ref = blob_of(row.body) if here is not None else None
    return here is not None and ref is not None and ref.bytes != here.bytes
