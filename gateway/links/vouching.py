"""What a peer shows of our own outbox: what our key has signed, this node must have written."""

from gateway.links.local import Local
from gateway.wire.frames import Have
from outbox.chain import Checkpoint, check_signature
from outbox.ids import Seq


def known_of_us(local: Local, frame: Have) -> Checkpoint | None:
    """The checkpoint of our own outbox in a list of streams, verified; None when there is none.

    Raises BadCheckpoint for one that our key has not signed.
    """
    who = local.identity
    verify, known = local.key_of(who.node), None
    for stock in frame.streams:
        if stock.node == who.node and stock.signature is not None and verify is not None:
            known = Checkpoint(who.mesh, who.node, stock.epoch, Seq(stock.last), stock.hash, stock.signature)
            check_signature(known, who.mesh, who.node, verify)
    return known
