"""Files in a backup and out of it: streamed, hashed, as many as are allowed, all or a word about it."""

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.backup.errors import BackupFailed
from gateway.backup.making import make_backup
from gateway.backup.manifest import BLOBS_NAME, Backup
from gateway.backup.restoring import restore
from gateway.blobs.reconciling import forget_missing
from gateway.home import Home
from outbox.blobfiles import BlobFiles
from outbox.blobref import BlobId
from outbox.journal import Journal
from outbox.records import Blob
from tests.gateway.backup.conftest import quiet, repacked

LARGE = b"large" * 600_000


def put(home: Home, *contents: bytes) -> list[BlobId]:
    """Keep blobs as a gateway does: first the file, then the row."""
    files = BlobFiles(home.blobs)
    journal = Journal.open(home.journal, wal_bytes=0)
    names = []
    for content in contents:
        name = BlobId(sha256(content).hexdigest())
        draft = files.part(name)
        draft.write(content)
        draft.sync()
        files.publish(draft, name)
        draft.close()
        journal.begin()
        journal.put_blob(Blob(sha256=name, bytes=len(content), stored_at_ms=1))
        journal.commit()
        names.append(name)
    journal.close()
    return names


def make(home: Home, target: Path, *, with_blobs: bool = True) -> Backup:
    return make_backup(home, target, with_keys=True, with_blobs=with_blobs, now_ms=5, progress=quiet)


def put_back(
    home: Home, source: Path, *, with_blobs: bool = True, now_ms: int = 9, **settings: str
) -> Backup:
    return restore(
        home,
        source,
        force=True,
        ask=True,
        with_blobs=with_blobs,
        environ=settings,
        now_ms=now_ms,
        progress=quiet,
    )


def missing(home: Home) -> int:
    """What a start of this home would find to be gone."""
    journal = Journal.open(home.journal, wal_bytes=0)
    try:
        return forget_missing(journal, BlobFiles(home.blobs))
    finally:
        journal.close()


def test_files_come_back_whole(home: Home, homes: Callable[[str], Home], tmp_path: Path) -> None:
    names = put(home, b"", b"small", LARGE)
    made = make(home, tmp_path / "b")
    assert (set(made.blobs.whole), made.blobs.bytes) == (set(names), 5 + len(LARGE))
    other = homes("other")
    assert put_back(other, tmp_path / "b") == made
    assert all(BlobFiles(other.blobs).holds(name) for name in names)
    assert missing(other) == 0
    for path in other.blobs.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    other.check()


def test_without_files_the_node_knows_what_is_missing(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    put(home, b"one", b"two")
    assert not make(home, tmp_path / "none", with_blobs=False).blobs.whole
    put_back(homes("a"), tmp_path / "none")
    assert missing(homes("a")) == 2
    make(home, tmp_path / "all")
    put_back(homes("b"), tmp_path / "all", with_blobs=False)
    assert missing(homes("b")) == 2


def test_a_file_that_is_no_longer_what_its_name_says_is_told_of_and_left_out(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    good, altered, cut, gone = put(home, b"good", b"altered", b"cut short", b"gone")
    (home.blobs / altered).write_bytes(b"ALTERED")
    (home.blobs / cut).write_bytes(b"cut")
    (home.blobs / gone).unlink()
    made = make(home, tmp_path / "b")
    assert set(made.blobs.whole) == {good}
    assert set(made.blobs.damaged) == {altered, cut, gone}
    put_back(homes("other"), tmp_path / "b")
    assert missing(homes("other")) == 3


def test_a_file_that_was_let_go_of_meanwhile_is_not_missed(home: Home, tmp_path: Path) -> None:
    kept, dropped = put(home, b"kept", b"dropped")

    def meanwhile(done: int, total: int) -> None:
        if (home.blobs / dropped).exists():
            journal = Journal.open(home.journal, wal_bytes=0)
            journal.begin()
            journal.drop_blob(dropped)
            journal.commit()
            journal.close()
            (home.blobs / dropped).unlink()

    made = make_backup(home, tmp_path / "b", with_keys=False, with_blobs=True, now_ms=5, progress=meanwhile)
    assert set(made.blobs.whole) == {kept}
    assert not made.blobs.damaged


def blob_in(contents: dict[str, bytes]) -> str:
    return next(name for name in contents if name.startswith("blobs/"))


def alter(contents: dict[str, bytes]) -> None:
    contents[blob_in(contents)] = b"x" * len(contents[blob_in(contents)])


def cut(contents: dict[str, bytes]) -> None:
    contents[blob_in(contents)] = contents[blob_in(contents)][1:]


def lose(contents: dict[str, bytes]) -> None:
    del contents[blob_in(contents)]


def lose_list(contents: dict[str, bytes]) -> None:
    del contents[BLOBS_NAME]


def garble_list(contents: dict[str, bytes]) -> None:
    contents[BLOBS_NAME] = b"{"


def climb(contents: dict[str, bytes]) -> None:
    contents[BLOBS_NAME] = b'{"whole": {"../../evil": 1}}'


@pytest.mark.parametrize(
    "change", [alter, cut, lose, lose_list, garble_list, climb], ids=lambda change: change.__name__
)
def test_a_damaged_backup_changes_nothing(
    home: Home, homes: Callable[[str], Home], tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    put(home, b"content")
    make(home, tmp_path / "b")
    other = homes("other")
    with pytest.raises(BackupFailed):
        put_back(other, repacked(tmp_path / "b", change))
    assert not other.journal.exists()
    assert not list(other.root.rglob("*evil*"))
    assert not (other.root / ".restoring").exists()


def test_a_backup_that_was_cut_short_is_none(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    put(home, LARGE)
    make(home, tmp_path / "b")
    raw = (tmp_path / "b").read_bytes()
    for size in (len(raw) - 12_000, len(raw) // 2):
        (tmp_path / "b").write_bytes(raw[:size])
        with pytest.raises(BackupFailed):
            put_back(homes("other"), tmp_path / "b")
        assert not homes("other").journal.exists()


def test_more_than_the_settings_allow_is_refused(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    put(home, b"12345", b"678")
    make(home, tmp_path / "b")
    with pytest.raises(BackupFailed, match=r"blobs\.bytes_max is 7") as refused:
        put_back(homes("other"), tmp_path / "b", GATEWAY_BLOBS_BYTES_MAX="7")
    assert "--without-blobs" in refused.value.hint
    assert not homes("other").journal.exists()
    put_back(homes("other"), tmp_path / "b", GATEWAY_BLOBS_BYTES_MAX="8")
    assert missing(homes("other")) == 0


def test_a_disk_with_too_little_room_is_refused_before_anything_is_written(
    home: Home, homes: Callable[[str], Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home, LARGE)
    make(home, tmp_path / "b")
    usage = shutil.disk_usage(tmp_path)
    need = sum(path.stat().st_size for path in (home.journal, home.room) if path.exists())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=need + len(LARGE) - 1))
    for step in (lambda: make(home, tmp_path / "again"), lambda: put_back(homes("other"), tmp_path / "b")):
        with pytest.raises(BackupFailed, match="are free"):
            step()
    assert not (tmp_path / "again").exists()
    assert not homes("other").journal.exists()


def test_files_that_are_there_are_not_written_again(home: Home, tmp_path: Path) -> None:
    (name,) = put(home, LARGE)
    make(home, tmp_path / "b")
    before = (home.blobs / name).stat().st_ino
    put_back(home, tmp_path / "b")
    assert (home.blobs / name).stat().st_ino == before
    (home.blobs / name).write_bytes(b"damaged")
    put_back(home, tmp_path / "b", now_ms=10)
    assert BlobFiles(home.blobs).holds(name)


def test_a_backup_of_the_version_before_is_read(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    def older(contents: dict[str, bytes]) -> None:
        said = contents["manifest.json"].replace(b'"version": 2', b'"version": 1')
        contents["manifest.json"] = b"".join(
            line for line in said.splitlines(keepends=True) if b"withBlobs" not in line
        )

    make(home, tmp_path / "b", with_blobs=False)
    made = put_back(homes("other"), repacked(tmp_path / "b", older))
    assert (made.manifest.version, made.manifest.with_blobs) == (1, False)
