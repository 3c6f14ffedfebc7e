import pytest

from outbox.errors import InvalidId
from stateroom.bodies import BODY_TYPES, TOMBSTONES, RoomMap, check_key


def test_every_map_has_a_body() -> None:
    assert set(BODY_TYPES) == set(RoomMap)


def test_admissions_and_agents_have_no_tombstones() -> None:
    assert TOMBSTONES.isdisjoint({RoomMap.ADMISSIONS, RoomMap.AGENTS, RoomMap.PRESENCE})


def test_no_node_is_called_root_but_an_agent_may_be() -> None:
    check_key(RoomMap.AGENTS, "root")
    with pytest.raises(InvalidId):
        check_key(RoomMap.ADMISSIONS, "root")
