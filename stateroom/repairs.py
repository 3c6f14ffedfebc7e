"""Which keys of a room hold something lesser than the record that counts.

Everybody who has seen the better record may put it back: it proves itself. The owner does so at once, the
others at the next tick if it is still needed, so that one overwritten key does not make every node write.
"""

from collections.abc import Iterable

from stateroom.bodies import RoomMap
from stateroom.index import Index
from stateroom.limits import PUT_BACK_PER_TICK, PUT_BACK_QUEUE_MAX
from stateroom.replica import Replica

Place = tuple[str, str]
"""Map and key."""


class Repairs:
    """The keys that wait to be put back."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._own: dict[Place, None] = {}
        self._waiting: dict[Place, None] = {}

    def own(self, place: Place) -> None:
        """This node writes this key."""
        self._own[place] = None

    def watch(self, replica: Replica, places: Iterable[Place]) -> None:
        """These keys were touched: note those whose value is not the one that counts."""
        for place in places:
            if len(self._waiting) < PUT_BACK_QUEUE_MAX and self._better(replica, place):
                self._waiting[place] = None

    def watch_all(self, replica: Replica) -> None:
        """Look at every key of the room, for when single keys were forgotten or the document is a new one."""
        maps = [RoomMap(name) for name in replica.roots]
        self.watch(replica, [(record.map.value, record.key) for record in self._index.records(*maps)])

    def repair_own(self, replica: Replica) -> int:
        """Put back what this node wrote; how many."""
        return self._repair(replica, [place for place in self._waiting if place in self._own])

    def repair_some(self, replica: Replica) -> int:
        """Put back a few of all that wait; how many."""
        return self._repair(replica, list(self._waiting)[:PUT_BACK_PER_TICK])

    def _repair(self, replica: Replica, places: list[Place]) -> int:
        done = 0
        for place in places:
            del self._waiting[place]
            if better := self._better(replica, place):
                replica.put(*place, better)
                done += 1
        return done

    def _better(self, replica: Replica, place: Place) -> str | None:
        """The text that counts, if the document holds another one."""
        room_map, key = place
        best = self._index.record(RoomMap(room_map), key) if room_map in replica.roots else None
        return best.text if best is not None and replica.get(room_map, key) != best.text else None
