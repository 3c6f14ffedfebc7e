"""What all links of one gateway share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gateway.blobs.keeper import BlobKeeper
from gateway.clock import Clock
from gateway.engine.policy import MirrorPolicy
from gateway.links.shelf import Committed
from gateway.runtime import Runtime
from outbox.chain import Verify
from outbox.ids import NodeId
from outbox.records import Identity
from stateroom.view import View


class KeyOf(Protocol):
    """The keys of nodes, as the state room knows them."""

    def __call__(self, node: NodeId, /) -> Verify | None:
        """How to verify what a node signed; None for one that is not admitted."""
        ...


class Words(Protocol):
    """What is said over links of keys that belong to the mesh no more; the state room of this node."""

    def tell(self) -> tuple[str, ...]:
        """Signed words, as many as fit into a ``hello``."""
        ...

    def hear(self, texts: Iterable[str], /) -> None:
        """The same from a peer: whatever counts is believed, whoever brings it."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """What every link of this gateway shares."""

    identity: Identity
    runtime: Runtime
    reader: Committed
    clock: Clock
    key_of: KeyOf
    mirror: MirrorPolicy
    blobs: BlobKeeper
    words: Words

    def view(self) -> View:
        """What the state room says now."""
        return self.runtime.view
