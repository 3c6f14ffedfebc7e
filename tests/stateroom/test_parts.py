"""A part is drawn when it is first asked for and after each change, and not otherwise."""

import pytest

from outbox.ids import NodeId
from stateroom.bodies import RoomMap
from stateroom.parts import Parts
from stateroom.picture import Seen


class Drawn:
    def __init__(self) -> None:
        self.parts = Parts()
        self.times = 0

    def draw(self) -> dict[str, int]:
        self.times += 1
        return {}

    def look(self, room_map: RoomMap) -> int:
        self.parts.of(room_map, self.draw)
        return self.times


@pytest.mark.parametrize("room_map", [RoomMap.NODES, RoomMap.AGENTS, RoomMap.CURSORS, RoomMap.FORKS])
def test_a_part_is_kept_until_its_map_changes(room_map: RoomMap) -> None:
    drawn = Drawn()
    assert [drawn.look(room_map), drawn.look(room_map)] == [1, 1], "an empty part is kept as well"
    drawn.parts.change((room_map,))
    assert [drawn.look(room_map), drawn.look(room_map)] == [2, 2]


def test_an_admission_changes_nodes_and_no_agents() -> None:
    nodes, agents = Drawn(), Drawn()
    for drawn, room_map, times in ((nodes, RoomMap.NODES, 2), (agents, RoomMap.AGENTS, 1)):
        drawn.look(room_map)
        drawn.parts.change((RoomMap.ADMISSIONS,))
        assert drawn.look(room_map) == times


def test_another_presence_changes_nodes() -> None:
    drawn = Drawn()
    seen = {NodeId("b"): Seen(True, 5)}
    for presence, times in (({}, 1), (seen, 2), (dict(seen), 2), ({NodeId("b"): Seen(False, 5)}, 3)):
        drawn.parts.look(presence)
        assert drawn.look(RoomMap.NODES) == times
