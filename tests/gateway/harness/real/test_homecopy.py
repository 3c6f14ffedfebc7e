"""A home that is put back by hand is as it was, but for what is its machine's."""

from pathlib import Path

import pytest

from gateway.harness.real.homecopy import copy_home, keep_journal, put_home, take_aside
from gateway.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home of which every file says "old"."""
    made = Home(tmp_path / "home", tmp_path / "runtime")
    names = (
        *("gateway.toml", "journal.db", "journal.db-wal", "journal.db-shm", "room.db", "lock"),
        *("agents/a.token", "keys/node.key", "log/gateway.jsonl", "before-restore-1/journal.db"),
    )
    for name in names:
        (made.root / name).parent.mkdir(parents=True, exist_ok=True)
        (made.root / name).write_text("old")
    return made


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_it_is_put_back_whole(home: Home, tmp_path: Path) -> None:
    copy_home(home, tmp_path / "saved")
    before = contents(tmp_path / "saved")
    assert {"journal.db", "journal.db-wal", "room.db", "keys/node.key", "agents/a.token"} <= before.keys()
    for path in home.root.rglob("*"):
        if path.is_file() and path.parent.name not in {"agents", "keys"}:
            path.write_text("new")
    (home.root / "new-epoch").write_text("new")
    put_home(tmp_path / "saved", home)
    stays = {"log/gateway.jsonl": "new", "lock": "new"}
    assert contents(home.root) == before | stays


def test_a_journal_is_kept_as_a_power_cut_leaves_it(home: Home, tmp_path: Path) -> None:
    kept = keep_journal(home.root, tmp_path / "kept")
    assert kept == tmp_path / "kept" / "journal.db"
    assert contents(kept.parent) == {"journal.db": "old", "journal.db-wal": "old"}
    aside = take_aside(home, tmp_path / "aside")
    assert aside.read_text() == "old"
    assert not list(home.root.glob("before-restore-*"))
