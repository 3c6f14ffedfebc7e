"""Blobs in SQL."""

from outbox.blobref import BlobId, blob_of
from outbox.ids import AgentId, Epoch, NodeId, Seq
from outbox.records import Blob, MissingBlob, Naming
from outbox.schema import ordinal_of, position
from outbox.sql.epochs import EpochReads
from outbox.sql.rows import Writing
from outbox.tables import BLOBS, COPIES, DELIVERIES, RECEIVED

_NAMERS = ("outbox", "copied_entries", "received")


class BlobReads(EpochReads):
    """The questions of ``outbox.store.blobs``."""

    def blob(self, sha256: BlobId) -> Blob | None:
        """One blob, if it is here."""
        return self._rows.find(BLOBS, sha256)

    def blobs(self) -> list[Blob]:
        """All of them, newest first."""
        return self._rows.all(BLOBS, "ORDER BY stored_at_ms DESC, sha256")

    def blob_bytes(self) -> int:
        """What they take together."""
        return sum(row.bytes for row in self._rows.all(BLOBS, ""))

    def unnamed_blobs(self, stored_before_ms: int, limit: int) -> list[Blob]:
        """Blobs that nobody names and that were stored before a time, oldest first."""
        named = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.blob = blobs.sha256)"  # noqa: S608 - own names
            for table in _NAMERS
        )
        clause = f"WHERE stored_at_ms < ? AND {named} ORDER BY stored_at_ms, sha256 LIMIT ?"
        return self._rows.all(BLOBS, clause, stored_before_ms, limit, beside=(RECEIVED,))

    def naming(self, sha256: BlobId, limit: int) -> list[Naming]:
        """Entries of the own outbox and of copies that name a blob."""
        own = self._rows.database.rows(
            "SELECT CAST(header AS BLOB) FROM outbox WHERE blob = ? ORDER BY position LIMIT ?",
            (sha256, limit),
        )
        copied = self._rows.ask(
            (COPIES,),
            "SELECT copies.source, CAST(header AS BLOB) FROM copied_entries"
            " JOIN copies ON copies.number = copied_entries.position >> 40"
            " WHERE copied_entries.blob = ? ORDER BY position LIMIT ?",
            (sha256, limit),
        )
        found = [Naming(self._identity.node, header) for (header,) in own]
        return [*found, *(Naming(NodeId(source), header) for source, header in copied)]

    def blob_agents(self, sha256: BlobId) -> set[AgentId]:
        """Agents of this node that were sent an event that names a blob, or have sent one."""
        found = self._rows.ask(
            (RECEIVED,), "SELECT DISTINCT to_agent FROM received WHERE blob = ?", (sha256,)
        )
        sent = self._rows.ask(
            (DELIVERIES,),
            "SELECT DISTINCT from_agent FROM deliveries WHERE event_id IN"
            " (SELECT event_id FROM outbox WHERE blob = ?)",
            (sha256,),
        )
        return {AgentId(agent) for (agent,) in (*found, *sent)}

    def first_unfetched(self, epoch: Epoch, seq: Seq, now_ms: int) -> tuple[Epoch, Seq] | None:
        """The first own reply up to a place that names a blob and lives."""
        clause = (
            "WHERE kind = 'reply' AND state = 'accepted' AND expires_at_ms > ? AND event_id IN"
            " (SELECT event_id FROM outbox WHERE blob IS NOT NULL AND position <= ?)"
        )
        rows = self._rows.all(DELIVERIES, clause, now_ms, position(epoch, seq))
        places = [place for row in rows if (place := self.first_position(row.event_id)) is not None]
        return min(places, default=None)

    def missing_blobs(self, limit: int) -> list[MissingBlob]:
        """What is named and not here: first what open turns wait for, then what copies name; by name."""
        found: dict[BlobId, MissingBlob] = {}
        for body, source, awaited in (*self._awaited(limit), *self._copied(limit)):
            ref = blob_of(body)
            if ref is not None and len(found) < limit:
                found.setdefault(ref.sha256, MissingBlob(ref.sha256, ref.bytes, source, awaited))
        return list(found.values())

    def _awaited(self, limit: int) -> list[tuple[bytes, NodeId, bool]]:
        clause = (
            "WHERE blob IS NOT NULL AND state IN ('queued', 'leased')"
            " AND NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = blob) ORDER BY blob, arrival LIMIT ?"
        )
        return [
            (row.body, row.source, True) for row in self._rows.all(RECEIVED, clause, limit, beside=(BLOBS,))
        ]

    def _copied(self, limit: int) -> list[tuple[bytes, NodeId, bool]]:
        rows = self._rows.ask(
            (BLOBS,),
            "SELECT position, CAST(body AS BLOB) FROM copied_entries WHERE blob IS NOT NULL"
            " AND NOT EXISTS (SELECT 1 FROM blobs WHERE sha256 = blob) ORDER BY blob, position LIMIT ?",
            (limit,),
        )
        sources = dict(self._numbered())
        return [(body, sources[ordinal_of(key)], False) for key, body in rows if ordinal_of(key) in sources]

    def _numbered(self) -> list[tuple[int, NodeId]]:
        return [
            (number, NodeId(source))
            for number, source in self._rows.ask((COPIES,), "SELECT number, source FROM copies")
        ]


class BlobWrites(Writing, BlobReads):
    """What the writer adds."""

    def put_blob(self, row: Blob) -> None:
        """Insert or replace it."""
        self._rows.put(BLOBS, row)

    def drop_blob(self, sha256: BlobId) -> None:
        """It is here no more; an absent one is fine."""
        self._rows.drop(BLOBS, "WHERE sha256 = ?", sha256)
