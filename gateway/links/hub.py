"""Who decides over all links of one gateway, as a single link sees it."""

from typing import Protocol, TypeVar

from gateway.wire.frames import Stock
from outbox.chain import Checkpoint
from outbox.errors import MeshError
from outbox.ids import NodeId

_Link_contra = TypeVar("_Link_contra", contravariant=True)


class Hub(Protocol[_Link_contra]):
    """Who decides over all links."""

    def greeted(self, link: _Link_contra) -> None:
        """The peer is who it should be: its outbox can be read."""
        ...

    def offered(self, link: _Link_contra, stocks: tuple[Stock, ...]) -> None:
        """The peer has this. Raises TooManyStreams."""
        ...

    def readable(self, link: _Link_contra) -> list[Stock]:
        """What of all that the peer has offered can be read here."""
        ...

    def caught(self, link: _Link_contra, stream: NodeId, error: MeshError) -> None:
        """The peer brought what the stream's writer has not written."""
        ...

    def forgotten(self, floor: Checkpoint) -> bool:
        """The peer has forgotten its outbox up to here; whether reading goes on there at once."""
        ...
