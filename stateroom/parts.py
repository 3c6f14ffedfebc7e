"""Parts of a view, drawn again only when something has changed them.

Most changes are of cursors, and agents are many.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from outbox.ids import NodeId
from stateroom.bodies import RoomMap
from stateroom.picture import Seen

_Part = TypeVar("_Part")


class Parts:
    """What was drawn of each map, until it changes. Nodes are drawn from admissions and presence as well."""

    def __init__(self) -> None:
        self._drawn: dict[RoomMap, Any] = {}
        self._presence: Mapping[NodeId, Seen] = {}

    def look(self, presence: Mapping[NodeId, Seen]) -> None:
        """With this presence the view is asked for next."""
        if presence != self._presence:
            self._presence = dict(presence)
            self.change((RoomMap.NODES,))

    def change(self, maps: Iterable[RoomMap]) -> None:
        """Other records count in these maps now."""
        for room_map in maps:
            if room_map is RoomMap.ADMISSIONS:
                self._drawn.pop(RoomMap.NODES, None)
                self._drawn.pop(RoomMap.REVOCATIONS, None)
            else:
                self._drawn.pop(room_map, None)

    def of(self, room_map: RoomMap, draw: Callable[[], _Part]) -> _Part:
        """The part of a map."""
        part: _Part | None = self._drawn.get(room_map)
        if part is None:
            part = self._drawn[room_map] = draw()
        return part
