"""A room read from its file: what was stored, beside its gateway or without one."""

import random
from pathlib import Path

import pytest

from outbox.errors import StorageFailed
from stateroom.bodies import RoomMap
from stateroom.reading import stored_values
from stateroom.replica import Replica
from stateroom.store import RoomStore

MAPS = frozenset({RoomMap.NODES, RoomMap.ADMISSIONS, RoomMap.AGENTS, RoomMap.FORKS})


def new_client_id() -> int:
    return random.getrandbits(31)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.db"


def write(store: RoomStore, replica: Replica, room_map: RoomMap, key: str, value: str) -> None:
    replica.put(room_map, key, value)
    for _, update in replica.take().updates:
        store.append("state", update)


def values(path: Path) -> list[tuple[str, str, object]]:
    return [(each.map, each.key, each.value) for each in stored_values(path, "state", MAPS, new_client_id)]


def test_what_was_stored_is_read_with_admissions_first_while_the_store_is_open(path: Path) -> None:
    store, replica = RoomStore(path), Replica(MAPS, new_client_id)
    write(store, replica, RoomMap.FORKS, "b/1", "proof")
    write(store, replica, RoomMap.ADMISSIONS, "b", "admitted")
    store.append("cursors", b"of another room")
    assert values(path) == [("admissions", "b", "admitted"), ("forks", "b/1", "proof")]
    store.compact("state", replica.compacted(), store.last("state"))
    write(store, replica, RoomMap.NODES, "b", "later")
    assert values(path)[0] == ("admissions", "b", "admitted")
    assert sorted(values(path)[1:]) == [("forks", "b/1", "proof"), ("nodes", "b", "later")]
    store.close()
    assert len(values(path)) == 3, "its gateway does not run"


def test_a_piece_that_cannot_be_applied_is_left_out(path: Path) -> None:
    store, replica = RoomStore(path), Replica(MAPS, new_client_id)
    write(store, replica, RoomMap.NODES, "a", "before")
    store.append("state", b"junk")
    write(store, replica, RoomMap.NODES, "b", "after")
    store.close()
    assert {key for _, key, _ in values(path)} == {"a", "b"}


def test_a_file_that_is_none_is_said_to_be(path: Path) -> None:
    path.write_bytes(b"no database" * 100)
    with pytest.raises(StorageFailed):
        values(path)
    assert path.read_bytes() == b"no database" * 100, "nothing is mended by a reader"
