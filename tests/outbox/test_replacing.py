import os
import stat
from pathlib import Path

import pytest

from outbox.replacing import replace_file


def test_the_new_content_takes_the_place_of_the_old_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_the_draft_of_a_killed_writer_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".a.json.draft").write_bytes(b"half")
    replace_file(tmp_path / "a.json", b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"whole")]


def test_content_is_on_disk_before_its_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced, real = tmp_path / "a.json", [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(path.exists()), real(descriptor))[1])
    replace_file(path, b"content")
    assert synced == [False, True]


def test_a_failed_write_leaves_the_old_content_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    replace_file(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace_file(path, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])
