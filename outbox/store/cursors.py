"""How far the outboxes of other nodes were read."""

from typing import Protocol

from outbox.chain import Head
from outbox.ids import NodeId


class CursorStore(Protocol):
    """One place an outbox."""

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        ...

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        ...

    def put_cursor(self, source: NodeId, head: Head) -> None:
        """Move it."""
        ...
