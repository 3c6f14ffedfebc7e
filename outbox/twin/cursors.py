"""Cursors in memory."""

from outbox.chain import Head
from outbox.ids import NodeId
from outbox.records import Identity
from outbox.twin.transaction import Transaction


class TwinCursors(Transaction):
    """``outbox.store.cursors`` in a dictionary."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(identity)
        self._cursors: dict[NodeId, Head] = {}

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        return self._cursors.get(source)

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        return dict(sorted(self._cursors.items()))

    def put_cursor(self, source: NodeId, head: Head) -> None:
        """Move it."""
        self._set(self._cursors, source, head)
