"""What a peer shows: of our own outbox, what our key has signed; of others, what their writers have."""

from gateway.links.local import Local
from gateway.wire.frames import Entries, Have
from outbox.chain import Checkpoint, Verify, check_signature
from outbox.errors import BadCheckpoint
from outbox.ids import NodeId, Seq


def known_of_us(local: Local, frame: Have) -> Checkpoint | None:
    """The checkpoint of our own outbox in a list of streams, verified; None when there is none that is news.

    Raises BadCheckpoint for one that our key has not signed.
    """
    who, head = local.identity, local.runtime.feed.head
    verify, known = local.key_of(who.node), None
    for stock in frame.streams:
        if (
            stock.node == who.node
            and stock.signature is not None
            and verify is not None
            and stock.head != head
            and local.view().ended(who.node, stock.epoch) is None
        ):
            known = Checkpoint(who.mesh, who.node, stock.epoch, Seq(stock.last), stock.hash, stock.signature)
            check_signature(known, who.mesh, who.node, verify)
    return known


def check_page(local: Local, peer: NodeId, own: Verify, frame: Entries) -> None:
    """A page is signed by its writer; ``own`` verifies what the peer has written. Raises BadCheckpoint."""
    verify = own if frame.node == peer else local.key_of(frame.node)
    if verify is None:
        raise BadCheckpoint(f"{frame.node} is no member any more")
    check_signature(frame.page.checkpoint, local.identity.mesh, frame.node, verify)
