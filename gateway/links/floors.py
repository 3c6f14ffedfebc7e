"""Where writers say that their outboxes begin now, and when a reader that stands below has to go on there.

A copy outlives what its writer forgets. So who stands below a floor reads from whoever still has the rest,
and goes on at the floor only when nobody has brought any of it for long enough. Waiting is counted in looks:
a process that stood still, or had no link, has waited for nothing.
"""

from collections.abc import Mapping

from gateway.links.limits import FLOOR_HOPELESS_LOOKS, FLOOR_LOOKS
from outbox.chain import Checkpoint, Head
from outbox.ids import NodeId, epoch_ordinal


class Floors:
    """The floors of all streams that one node reads."""

    def __init__(self) -> None:
        self._floors: dict[NodeId, Checkpoint] = {}
        self._looks: dict[NodeId, int] = {}
        """At streams that stand below a floor, since something of them came."""

    def told(self, floor: Checkpoint) -> bool:
        """A writer has forgotten everything up to here; whether that is news."""
        known = self._floors.get(floor.node)
        if known is not None and _order(known.head) >= _order(floor.head):
            return False
        self._floors[floor.node] = floor
        return True

    def below(self, stream: NodeId, cursor: Head | None) -> bool:
        """Whether a reader has begun with a stream and stands where its writer has nothing any more."""
        floor = self._floors.get(stream)
        if floor is None or cursor is None or not cursor.seq:
            return False
        return _order(cursor) < _order(floor.head)

    def all_below(self, cursors: Mapping[NodeId, Head]) -> list[NodeId]:
        """All such streams."""
        return [stream for stream in self._floors if self.below(stream, cursors.get(stream))]

    def look(self, stream: NodeId, *, hope: bool) -> Checkpoint | None:
        """Nothing has come since the last look; the floor when it is time to go on there.

        ``hope``: somebody has the rest, or may have it. It may be distrusted, slow or away, and is waited for
        until it was tried again.
        """
        looks = self._looks.get(stream, 0) + 1
        if looks < (FLOOR_LOOKS if hope else FLOOR_HOPELESS_LOOKS):
            self._looks[stream] = looks
            return None
        self.came(stream)
        return self._floors[stream]

    def came(self, stream: NodeId) -> None:
        """Something of it was read, or what was read had no room here: nobody else is at fault."""
        self._looks.pop(stream, None)


def _order(head: Head) -> tuple[int, int]:
    return epoch_ordinal(head.epoch), head.seq
