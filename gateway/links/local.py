"""What all links of one gateway share."""

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

    def view(self) -> View:
        """What the state room says now."""
        return self.runtime.view
