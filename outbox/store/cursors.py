"""How far the outboxes of other nodes were read."""

from typing import Protocol

from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId


class CursorStore(Protocol):
    """One place an outbox."""

    def cursor(self, source: NodeId) -> Head | None:
        """How far another node's outbox was read and handled."""
        ...

    def cursors(self) -> dict[NodeId, Head]:
        """All of them, by name."""
        ...

    def put_cursor(self, source: NodeId, head: Head, signature: bytes = b"") -> None:
        """Move it; with the signature of the checkpoint that stands there."""
        ...

    def signed_cursor(self, source: NodeId) -> Checkpoint | None:
        """The checkpoint at the cursor: what proves how far the other node has written; None without one."""
        ...
