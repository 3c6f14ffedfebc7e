"""Blobs in memory: whoever names one is found by looking at all entries and turns."""

from collections.abc import Iterator

from outbox.blobref import BlobId, blob_of, named_blob
from outbox.ids import Epoch, NodeId, Seq
from outbox.kinds import Kind
from outbox.records import Blob, DeliveryState, Identity, MissingBlob, Naming, TurnState
from outbox.twin.copies import TwinCopies
from outbox.twin.retention import TwinRetention


class TwinBlobs(TwinRetention, TwinCopies):
    """``outbox.store.blobs`` over the dictionaries of the others."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._blobs: dict[BlobId, Blob] = {}

    def blob(self, sha256: BlobId) -> Blob | None:
        """One blob, if it is here."""
        return self._blobs.get(sha256)

    def blobs(self) -> list[Blob]:
        """All of them, newest first."""
        return sorted(self._blobs.values(), key=lambda row: (-row.stored_at_ms, row.sha256))

    def blob_bytes(self) -> int:
        """What they take together."""
        return sum(row.bytes for row in self._blobs.values())

    def put_blob(self, row: Blob) -> None:
        """Insert or replace it."""
        self._set(self._blobs, row.sha256, row)

    def drop_blob(self, sha256: BlobId) -> None:
        """It is here no more; an absent one is fine."""
        self._drop(self._blobs, sha256)

    def unnamed_blobs(self, stored_before_ms: int, limit: int) -> list[Blob]:
        """Blobs that nobody names and that were stored before a time, oldest first."""
        old = [row for row in self._blobs.values() if row.stored_at_ms < stored_before_ms]
        named = (
            {named_blob(body) for _, _, body in (*self._own_entries(), *self._copied_entries())}
            if old
            else set()
        )
        named |= {row.blob for row in self._received.values()}
        gone = [row for row in old if row.sha256 not in named]
        return sorted(gone, key=lambda row: (row.stored_at_ms, row.sha256))[:limit]

    def naming(self, sha256: BlobId, limit: int) -> list[Naming]:
        """Entries of the own outbox and of copies that name a blob."""
        return [
            Naming(source, header)
            for entries in (self._own_entries(), self._copied_entries())
            for source, header, _ in [entry for entry in entries if named_blob(entry[2]) == sha256][:limit]
        ]

    def first_unfetched(self, epoch: Epoch, seq: Seq, now_ms: int) -> tuple[Epoch, Seq] | None:
        """The first own reply up to a place that names a blob and lives."""
        places = []
        for row in self._deliveries.values():
            lives = row.state is DeliveryState.ACCEPTED and row.expires_at_ms > now_ms
            place = self.first_position(row.event_id) if lives and row.kind == Kind.REPLY else None
            if (
                place is not None
                and place <= (epoch, seq)
                and named_blob(self._entry(*place).body) is not None
            ):
                places.append(place)
        return min(places, default=None)

    def missing_blobs(self, limit: int) -> list[MissingBlob]:
        """What is named and not here: first what open turns wait for, then what copies name; by name."""
        turns = [
            (row.body, row.source)
            for row in sorted(self._received.values(), key=lambda row: row.accepted_at_ms)
            if row.blob is not None and row.state in {TurnState.QUEUED, TurnState.LEASED}
        ]
        copied = [(body, source) for source, _, body in self._copied_entries()]
        found: dict[BlobId, MissingBlob] = {}
        for named, awaited in ((turns, True), (copied, False)):
            refs = [(ref, source) for body, source in named if (ref := blob_of(body)) is not None]
            for ref, source in sorted(refs, key=lambda pair: pair[0].sha256):
                if ref.sha256 not in self._blobs and len(found) < limit:
                    found.setdefault(ref.sha256, MissingBlob(ref.sha256, ref.bytes, source, awaited))
        return list(found.values())

    def _own_entries(self) -> Iterator[tuple[NodeId, bytes, bytes]]:
        for history in self._histories.values():
            for entry in history.entries:
                yield self._identity.node, entry.header, entry.body

    def _copied_entries(self) -> Iterator[tuple[NodeId, bytes, bytes]]:
        for copy in self._copies.values():
            for _, entry in sorted(self._contents[copy.number].entries.items()):
                yield copy.source, entry.header, entry.body
