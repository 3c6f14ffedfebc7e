"""What the harness can do to the ways between gateways, whichever they are made of."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from outbox.ids import NodeId


class Network(Protocol):
    """Ways between every two nodes, in both directions."""

    def settings(self, node: NodeId) -> Mapping[str, object]:
        """Where a node listens and what it publishes, as settings of the gateway."""
        ...

    def prefix(self, node: NodeId) -> Sequence[str]:
        """What goes before the command lines of a node."""
        ...

    async def block(self, source: NodeId, target: NodeId) -> None:
        """Nothing gets from one to the other any more, and nobody is told."""
        ...

    async def unblock(self, source: NodeId, target: NodeId) -> None:
        """It gets there again, what was held back included, once each ``block`` has its ``unblock``."""
        ...

    async def snap(self, one: NodeId, other: NodeId) -> None:
        """Break the connections between two nodes; new ones may be made."""
        ...

    async def slow(self, one: NodeId, other: NodeId, delay_ms: int) -> None:
        """What passes between two nodes is so much late; 0: it is not."""
        ...

    async def heal(self) -> None:
        """Everything passes again, at once."""
        ...

    async def close(self) -> None:
        """Take it down."""
        ...
