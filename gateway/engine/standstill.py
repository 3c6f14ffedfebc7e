"""The standstill of a stream is an open incident until it moves, or until nothing more of it is read."""

from gateway.engine.maintenance import meanwhile
from gateway.engine.stalls import StreamFlows, StreamStalled
from gateway.engine.tick import Tick
from outbox.ids import NodeId
from outbox.store import Store

STALLED = "stream_stalled"


def open_stalls(store: Store) -> list[NodeId]:
    """Streams that stood still when the last process ended."""
    return [NodeId(row.subject) for row in store.incidents(open_only=True) if row.kind == STALLED]


def note_stall(tick: Tick, item: StreamStalled | StreamFlows) -> None:
    """They have more of it, the link is up and nothing moves; or it does again.

    Of a node that was put out nobody waits for more than its revocation leaves.
    """
    if isinstance(item, StreamFlows):
        flows(tick, item.node)
    elif tick.view.revoked(item.node) is None or tick.peers.endings.awaits(item.node):
        tick.peers.stalled.add(item.node)
        away = meanwhile(tick, item.peer, item.node)
        tick.open_incident(STALLED, item.node, f"{item.peer} has more of it than comes{away}")


def flows(tick: Tick, node: NodeId) -> None:
    """Nobody waits for more of this stream now."""
    if node in tick.peers.stalled:
        tick.peers.stalled.discard(node)
        tick.close_incident(STALLED, node)
