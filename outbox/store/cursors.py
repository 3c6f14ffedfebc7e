"""How far the outboxes of other nodes were read, and which of them have forgotten part of theirs."""

from typing import Protocol

from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId
from outbox.records import Lapse


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

    def put_lapse(self, lapse: Lapse) -> None:
        """A node has forgotten; what follows from that is not done yet."""
        ...

    def drop_lapse(self, lapse: Lapse) -> None:
        """It is done; one that is not there is fine."""
        ...

    def lapses(self) -> list[Lapse]:
        """All of them, by node and epoch."""
        ...
