"""Turns that are accepted and wait for a blob, by the blob."""

from itertools import islice

from gateway.engine.turnkey import Place
from outbox.blobref import BlobId, blob_of
from outbox.records import Received
from outbox.store import Store

WRONG_SIZE = "blob_wrong_size"
"""Why a turn fails whose event says another size than its blob has: then it means another content."""


class Awaited:
    """Places in the courier, oldest first."""

    def __init__(self) -> None:
        self._places: dict[BlobId, dict[Place, str]] = {}
        self._blob_of: dict[Place, BlobId] = {}

    def __contains__(self, place: Place) -> bool:
        return place in self._blob_of

    def add(self, blob: BlobId, place: Place) -> None:
        """Let a turn wait."""
        self._places.setdefault(blob, {})[place] = place[1]
        self._blob_of[place] = blob

    def drop(self, place: Place) -> None:
        """It waits no longer; one that does not wait is fine."""
        blob = self._blob_of.pop(place, None)
        if blob is not None:
            del self._places[blob][place]
            if not self._places[blob]:
                del self._places[blob]

    def turns(self, blob: BlobId, most: int) -> list[str]:
        """The keys of the oldest that wait for a blob, at most so many."""
        return list(islice(self._places.get(blob, {}).values(), most))


def is_missing(store: Store, blob: BlobId | None) -> bool:
    """Whether a blob is named and not here."""
    return blob is not None and store.blob(blob) is None


def says_wrong_size(store: Store, row: Received) -> bool:
    """Whether the blob of a turn is here and is not what its event says."""
    here = store.blob(row.blob) if row.blob is not None else None
    ref = blob_of(row.body) if here is not None else None
    return here is not None and ref is not None and ref.bytes != here.bytes
