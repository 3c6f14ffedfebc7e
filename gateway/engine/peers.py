"""What links have told of other nodes since this process began: memory, nothing that must survive it.

A link that comes up advertises heads: how far each stream goes that can be read over it. Until a stream has
been read that far it is *behind*: something that stands there already may cancel or replace what was read so
far. What it says later it has grown to is not waited for: on a busy stream nobody would ever be done. A link
that goes takes what it advertised with it, so nobody waits for a head that cannot be reached.
"""

from collections.abc import Iterable

from gateway.engine.endings import Endings
from gateway.engine.inputs import ClockMeasured, LinkUp, StreamHead
from gateway.engine.limits import CLOCK_ROUNDING_MS
from outbox.chain import Head
from outbox.ids import NodeId, epoch_ordinal


class Peers:
    """Heads that were advertised and not reached yet, and how wrong the clocks of others are."""

    def __init__(self, stalled: Iterable[NodeId] = ()) -> None:
        self.stalled = set(stalled)
        """Streams whose standstill is an open incident."""
        self.endings = Endings()
        """Of nodes whose key was revoked."""
        self._ahead: dict[NodeId, dict[NodeId, StreamHead]] = {}
        """By stream and by the link's peer."""
        self._told: dict[NodeId, set[NodeId]] = {}
        """Streams that each link has advertised."""
        self._clocks: dict[NodeId, ClockMeasured] = {}

    def up(self, link: LinkUp, cursors: dict[NodeId, Head]) -> set[NodeId]:
        """A link is up, or says again what it has; ``cursors`` tells how far each stream was read.

        Returns the streams that are behind by what this link advertised for the first time.
        """
        told = self._told.setdefault(link.peer, set())
        ahead = set()
        for head in link.heads:
            if head.node not in told and not reached(cursors.get(head.node), head):
                self._ahead.setdefault(head.node, {})[link.peer] = head
                ahead.add(head.node)
            told.add(head.node)
        return ahead

    def down(self, peer: NodeId) -> list[NodeId]:
        """A link is gone; the streams that nobody is known to be ahead in any more."""
        self._told.pop(peer, None)
        freed = []
        for node, heads in list(self._ahead.items()):
            if heads.pop(peer, None) is not None and not heads:
                del self._ahead[node]
                freed.append(node)
        return freed

    def forget(self, node: NodeId) -> None:
        """Nothing more of a node's stream will be read: nobody waits for what was advertised of it."""
        self._ahead.pop(node, None)

    def moved(self, node: NodeId, cursor: Head) -> bool:
        """A stream was read up to here; whether that was the last head that it was behind."""
        heads = self._ahead.get(node)
        if heads is None:
            return False
        for peer in [peer for peer, head in heads.items() if reached(cursor, head)]:
            del heads[peer]
        if heads:
            return False
        del self._ahead[node]
        return True

    def is_behind(self, node: NodeId) -> bool:
        """Whether more of a node's stream is known to exist and can be had now."""
        return node in self._ahead

    def measured(self, clock: ClockMeasured) -> None:
        """A peer's clock was compared with ours. A new link that is slow makes nobody forget what was known
        more exactly, unless both cannot be right."""
        known = self._clocks.get(clock.node)
        if known is None or clock.within_ms <= known.within_ms or contradict(clock, known):
            self._clocks[clock.node] = clock

    def clock_offset_ms(self, node: NodeId) -> int:
        """How far a node's clock is ahead of ours; 0 while nobody has measured it."""
        known = self._clocks.get(node)
        return 0 if known is None else known.offset_ms


def contradict(one: ClockMeasured, other: ClockMeasured) -> bool:
    """Whether two measurements of a clock cannot both be right: it was set between them."""
    return abs(one.offset_ms - other.offset_ms) > one.within_ms + other.within_ms + CLOCK_ROUNDING_MS


def reached(cursor: Head | None, head: StreamHead) -> bool:
    """Whether a reader that stands at ``cursor`` has all that was advertised."""
    if not head.seq:
        return True
    at = (0, 0) if cursor is None else (epoch_ordinal(cursor.epoch), cursor.seq)
    return at >= (epoch_ordinal(head.epoch), head.seq)
