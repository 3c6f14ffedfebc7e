"""Cursors in SQL."""

from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId
from outbox.records import Identity
from outbox.sql.rows import Asking, Writing
from outbox.tables import CURSORS, Cursor


class CursorReads(Asking):
    """The questions of ``outbox.store.cursors``."""

    _identity: Identity

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        row = self._rows.find(CURSORS, source)
        return row.head if row else None

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return {row.source: row.head for row in self._rows.all(CURSORS, "ORDER BY source")}

    def signed_cursor(self, source: NodeId) -> Checkpoint | None:
        """The checkpoint at the cursor; None where none was kept."""
        row = self._rows.find(CURSORS, source)
        return row.checkpoint(self._identity.mesh) if row else None


class CursorWrites(Writing, CursorReads):
    """What the writer adds."""

    def put_cursor(self, source: NodeId, head: Head, signature: bytes = b"") -> None:
        """Move it."""
        self._rows.put(CURSORS, Cursor(source, head.epoch, head.seq, head.hash, signature))
