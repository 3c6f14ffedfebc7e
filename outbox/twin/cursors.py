"""Cursors in memory."""

from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId
from outbox.records import Identity
from outbox.tables import Cursor
from outbox.twin.transaction import Transaction


class TwinCursors(Transaction):
    """``outbox.store.cursors`` in a dictionary."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._cursors: dict[NodeId, Cursor] = {}

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        row = self._cursors.get(source)
        return row.head if row else None

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return {source: row.head for source, row in sorted(self._cursors.items())}

    def signed_cursor(self, source: NodeId) -> Checkpoint | None:
        """The checkpoint at the cursor; None where none was kept."""
        row = self._cursors.get(source)
        return row.checkpoint(self._identity.mesh) if row else None

    def put_cursor(self, source: NodeId, head: Head, signature: bytes = b"") -> None:
        """Move it."""
        self._set(self._cursors, source, Cursor(source, head.epoch, head.seq, head.hash, signature))
