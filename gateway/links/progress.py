"""How far the peer's outbox was handled here: what ``seen`` says, and when.

A peer of version 1 takes it for credit and waits for it. For all others it is progress to look at: it is said
once a second at most, and the last word goes out with whatever is sent next.
"""

from gateway.links.limits import SEEN_EVERY_MS
from gateway.wire.frames import Seen
from outbox.chain import Head
from outbox.ids import NodeId


class Progress:
    """Of one link. Times are milliseconds of the monotonic clock."""

    def __init__(self, peer: NodeId) -> None:
        self.every_ms = SEEN_EVERY_MS
        self._peer = peer
        self._unsaid: Head | None = None
        self._due_ms = 0

    def handled(self, head: Head, now_ms: int) -> bool:
        """The peer's outbox was committed here up to this head; whether that may be said by itself."""
        self._unsaid = head
        return now_ms >= self._due_ms

    def take(self, now_ms: int) -> Seen | None:
        """What is to be said, once its time has come."""
        if self._unsaid is None or now_ms < self._due_ms:
            return None
        head, self._unsaid = self._unsaid, None
        self._due_ms = now_ms + self.every_ms
        return Seen(self._peer, head.epoch, head.seq)
