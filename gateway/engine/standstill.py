"""The standstill of a stream is an open incident until it moves, or until nothing more of it is read."""

from gateway.engine.tick import Tick
from outbox.ids import NodeId

STALLED = "stream_stalled"


def flows(tick: Tick, node: NodeId) -> None:
    """Nobody waits for more of this stream now."""
    if node in tick.peers.stalled:
        tick.peers.stalled.discard(node)
        tick.close_incident(STALLED, node)
