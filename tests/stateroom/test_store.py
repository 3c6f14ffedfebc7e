import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from stateroom.errors import RoomStoreFailed
from stateroom.store import RoomStore, Stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.db"


def reopened(store: RoomStore) -> RoomStore:
    store.close()
    return RoomStore(store.path)


def test_updates_come_back_in_order_and_by_room(path: Path) -> None:
    store = RoomStore(path)
    for number in range(5):
        store.append("state", b"s%d" % number)
        store.append("cursors", b"c%d" % number)
    store = reopened(store)
    assert [stored.payload for stored in store.load("state")] == [b"s0", b"s1", b"s2", b"s3", b"s4"]
    assert [stored.payload for stored in store.load("cursors")][-1] == b"c4"
    assert path.stat().st_mode & 0o777 == 0o600
    store.close()


def test_compaction_replaces_the_log_of_one_room(path: Path, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.store.LOG_ROWS_MAX", 3)
    store = RoomStore(path)
    for _ in range(4):
        store.append("state", b"u")
    store.append("cursors", b"c")
    assert store.wants_compaction("state")
    assert not store.wants_compaction("cursors")
    store.compact("state", b"all", store.last("state"))
    assert not store.wants_compaction("state")
    store.append("state", b"later")
    store = reopened(store)
    assert [stored.payload for stored in store.load("state")] == [b"all", b"later"]
    assert len(store.load("cursors")) == 1
    store.close()


def test_compaction_keeps_what_came_after_its_snapshot_was_taken(path: Path) -> None:
    store = RoomStore(path)
    store.append("state", b"before")
    upto = store.last("state")
    store.append("state", b"meanwhile")
    store.compact("state", b"all", upto)
    assert [stored.payload for stored in store.load("state")] == [b"all", b"meanwhile"]
    store.close()


def test_the_size_of_the_log_is_known_after_a_restart(path: Path, monkeypatch) -> None:
    monkeypatch.setattr("stateroom.store.LOG_BYTES_MAX", 10)
    store = RoomStore(path)
    store.append("state", b"x" * 11)
    store = reopened(store)
    store.load("state")
    assert store.wants_compaction("state")
    store.close()


def test_a_poisoned_piece_is_quarantined(path: Path) -> None:
    store = RoomStore(path)
    store.compact("state", b"bad snapshot", 0)
    store.append("state", b"bad")
    store.append("state", b"good")
    pieces = store.load("state")
    store.quarantine("state", pieces[0], "gc")
    store.quarantine("state", pieces[1], "size")
    assert store.load("state") == [Stored(2, b"good")]
    assert store.quarantined("state") == [("gc", b"bad snapshot"), ("size", b"bad")]
    store.close()


@pytest.mark.parametrize("damage", ["garbage", "bit"])
def test_a_damaged_file_is_set_aside_and_the_store_starts_empty(path: Path, damage: str) -> None:
    store = RoomStore(path)
    store.append("state", b"precious bytes")
    store.close()
    raw = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(b"no database at all " * 100)
    else:
        assert b"precious" in raw
        path.write_bytes(raw.replace(b"precious", b"PRECIOUS"))
    for expected in (path.with_name("room.db.damaged-1"), None):
        store = RoomStore(path)
        assert store.set_aside == expected
        assert store.load("state") == []
        store.close()
    assert path.with_name("room.db.damaged-1").exists()


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    RoomStore(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(RoomStoreFailed, match="version 99"):
        RoomStore(path)
    assert path.exists()


def test_a_place_that_cannot_be_written_is_an_error_and_not_an_empty_room(tmp_path: Path) -> None:
    with pytest.raises(RoomStoreFailed):
        RoomStore(tmp_path / "missing" / "room.db")


def test_a_failed_write_raises_and_the_next_one_works(path: Path) -> None:
    store = RoomStore(path)
    store._db.execute("PRAGMA max_page_count = 20")
    with pytest.raises(RoomStoreFailed, match="full"):
        store.append("state", b"x" * 1_000_000)
    store.append("state", b"small")
    assert [stored.payload for stored in store.load("state")] == [b"small"]
    store.close()


_WRITER = """
import sys
from pathlib import Path
from stateroom.store import RoomStore
store = RoomStore(Path(sys.argv[1]))
number = 0
while True:
    store.append("state", b"%d" % number)
    print(number, flush=True)
    number += 1
"""


def test_sigkill_loses_nothing_that_was_appended(path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with writer, writer.stdout as lines:
        for line in lines:
            if int(line) == 200:
                os.kill(writer.pid, signal.SIGKILL)
                break
        reported = [int(line) for line in lines.read().split()]
    last = max([200, *reported])
    store = RoomStore(path)
    assert store.set_aside is None
    stored = [int(piece.payload) for piece in store.load("state")]
    assert stored == list(range(len(stored)))
    assert len(stored) >= last + 1
    store.close()
