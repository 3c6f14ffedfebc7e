"""A node in a file and back: what is in it, what is refused, and that a home is never left half restored."""

import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gateway.backup.errors import BackupFailed
from gateway.backup.making import make_backup
from gateway.backup.manifest import NAME, Manifest
from gateway.backup.restoring import restore
from gateway.clock import Clock
from gateway.engine.own_stream import Reason
from gateway.epochmark import EpochMark, Mark
from gateway.errors import HomeError
from gateway.founding import found
from gateway.home import Home, write_private
from outbox.errors import HomeLocked
from outbox.ids import AgentId, NodeId
from outbox.journal import Journal
from outbox.lock import HomeLock
from outbox.records import LocalAgent
from tests.gateway.backup.conftest import quiet, repacked

VPS = NodeId("vps")


def put_agent(home: Home, name: str) -> None:
    journal = Journal.open(home.journal, wal_bytes=0)
    journal.begin()
    journal.put_agent(LocalAgent(name=AgentId(name), owner_epoch=1, token_hash=b"", created_at_ms=1))
    journal.commit()
    journal.close()


def agents(home: Home) -> list[str]:
    journal = Journal.open(home.journal, wal_bytes=0)
    try:
        return [row.name for row in journal.agents()]
    finally:
        journal.close()


def make(home: Home, target: Path, *, with_keys: bool = True) -> Manifest:
    return make_backup(home, target, with_keys=with_keys, with_blobs=False, now_ms=5, progress=quiet).manifest


def put_back(home: Home, source: Path, *, force: bool = False, ask: bool = True) -> Manifest:
    return restore(
        home, source, force=force, ask=ask, with_blobs=True, environ={}, now_ms=9, progress=quiet
    ).manifest


def test_a_node_comes_back_with_all_it_was(home: Home, homes: Callable[[str], Home], tmp_path: Path) -> None:
    put_agent(home, "bob")
    made = make(home, tmp_path / "b")
    assert (made.node, made.with_keys) == (VPS, True)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    other = homes("other")
    assert put_back(other, tmp_path / "b") == made
    assert agents(other) == ["bob"]
    assert other.token(AgentId("bob")).read_bytes() == b"secret\n"
    for file in [path for path in other.root.rglob("*") if path.is_file()]:
        assert file.stat().st_mode & 0o077 == 0, file
    other.check()
    assert not list(tmp_path.glob(".*")), "nothing is left beside the file"
    assert not (other.root / ".restoring").exists()


def test_a_restored_node_has_to_begin_a_new_epoch(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    make(home, tmp_path / "b")
    other = homes("other")
    put_back(other, tmp_path / "b", ask=False)
    mark = EpochMark(other.epoch_mark)
    assert mark.read() == Mark(Reason.RESTORE, ask=False)
    journal = Journal.open(other.journal, wal_bytes=0)
    own = mark.own_stream(journal.identity().epoch)
    assert own.is_due(journal.identity().epoch)
    assert not own.asks(journal.identity().epoch)
    journal.close()
    mark.drop()
    assert mark.read() is None


def test_without_keys_a_backup_holds_no_secret_and_needs_them_back(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    made = make(home, tmp_path / "b", with_keys=False)
    assert not [name for name in made.files if "/" in name or name.endswith(".token")]
    other = homes("other")
    other.create()
    with pytest.raises(HomeError, match="holds no keys of vps") as refused:
        put_back(other, tmp_path / "b")
    assert f"into {other.root}" in refused.value.hint
    assert not other.journal.exists()
    shutil.rmtree(other.keys)
    shutil.copytree(home.keys, other.keys)
    put_back(other, tmp_path / "b")
    assert Journal.made(other.journal)


def test_the_keys_of_another_node_do_not_fit(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    from auth.keyring import Keyring
    from outbox.chain import Entry
    from outbox.envelope import Header, encode_header
    from outbox.ids import EventId, Seq
    from tests.appending import append

    journal = Journal.open(home.journal, wal_bytes=0)
    header = encode_header(Header(event_id=EventId("evt_" + "0" * 32), kind="signal", size=2))
    entry = Entry(Seq(1), header, b"{}")
    journal.begin()
    append(journal, [entry], Keyring(home.keys).kept_node_key().sign)
    journal.commit()
    journal.close()
    make(home, tmp_path / "b", with_keys=False)
    other = homes("other")
    other.create()
    Keyring(other.keys).node_key(Clock().entropy)
    with pytest.raises(BackupFailed, match="not by the key"):
        put_back(other, tmp_path / "b")
    assert not other.journal.exists()


def test_a_home_that_is_a_nodes_is_set_aside_only_by_force(home: Home, tmp_path: Path) -> None:
    make(home, tmp_path / "b")
    put_agent(home, "late")
    with pytest.raises(HomeError, match="already") as refused:
        put_back(home, tmp_path / "b")
    assert "--force" in refused.value.hint
    assert agents(home) == ["late"]
    put_back(home, tmp_path / "b", force=True)
    assert agents(home) == []
    assert (home.root / "before-restore-9" / "journal.db").exists()


def test_a_running_gateway_is_not_restored_under_its_feet(home: Home, tmp_path: Path) -> None:
    make(home, tmp_path / "b")
    with HomeLock(home.lock), pytest.raises(HomeLocked):
        put_back(home, tmp_path / "b", force=True)


def test_a_backup_beside_a_writer_is_one_moment(home: Home, tmp_path: Path) -> None:
    """Rows come in pairs; whatever moment the copy shows, it never shows half of one."""
    lock = HomeLock(home.lock)
    journal_path, stop, ready = home.journal, threading.Event(), threading.Event()

    def write() -> None:
        journal = Journal.open(journal_path, wal_bytes=0)
        number = 0
        while not stop.is_set():
            journal.begin()
            for half in ("a", "b"):
                row = LocalAgent(
                    name=AgentId(f"{half}{number}"), owner_epoch=1, token_hash=b"", created_at_ms=1
                )
                journal.put_agent(row)
            journal.commit()
            number += 1
            ready.set()
        journal.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert ready.wait(60)
        make(home, tmp_path / "b")
    finally:
        stop.set()
        writer.join()
        lock.close()
    with tarfile.open(tmp_path / "b") as archive:
        (tmp_path / "journal.db").write_bytes(archive.extractfile("journal.db").read())  # type: ignore[union-attr]
    copy = Journal.open(tmp_path / "journal.db", wal_bytes=0)
    names = [row.name for row in copy.agents()]
    copy.close()
    assert names
    assert len([name for name in names if name[0] == "a"]) * 2 == len(names)


def flip(contents: dict[str, bytes]) -> None:
    raw = bytearray(contents["journal.db"])
    raw[len(raw) // 2] ^= 1
    contents["journal.db"] = bytes(raw)


def cut(contents: dict[str, bytes]) -> None:
    contents["journal.db"] = contents["journal.db"][:-1]


def lose(contents: dict[str, bytes]) -> None:
    del contents["room.db" if "room.db" in contents else "journal.db"]


def lie(contents: dict[str, bytes]) -> None:
    """A manifest that vouches for a damaged database."""
    contents["journal.db"] = b"x" * len(contents["journal.db"])
    manifest = msgspec.json.decode(contents[NAME])
    from hashlib import sha256

    manifest["files"]["journal.db"]["sha256"] = sha256(contents["journal.db"]).hexdigest()
    contents[NAME] = msgspec.json.encode(manifest)


@pytest.mark.parametrize("change", [flip, cut, lose, lie, dict.clear], ids=lambda change: change.__name__)
def test_a_damaged_backup_changes_nothing(
    home: Home, homes: Callable[[str], Home], tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    make(home, tmp_path / "b")
    other = homes("other")
    with pytest.raises(BackupFailed):
        put_back(other, repacked(tmp_path / "b", change))
    assert not other.journal.exists()
    assert not other.epoch_mark.exists()
    assert not (other.root / ".restoring").exists()


@pytest.mark.parametrize("content", [b"", b"junk" * 1000])
def test_what_is_no_archive(home: Home, homes: Callable[[str], Home], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(BackupFailed):
        put_back(homes("other"), tmp_path / "b")


def test_a_file_that_cannot_be_written_is_said_so(home: Home, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="cannot write"):
        make(home, tmp_path / "no" / "such" / "b")


def test_an_unreadable_mark_is_no_reason_to_forget_it(home: Home) -> None:
    write_private(home.epoch_mark, b"{")
    with pytest.raises(HomeError, match="damaged"):
        EpochMark(home.epoch_mark).read()


def test_the_keys_of_another_node_are_never_replaced(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    make(home, tmp_path / "b")
    other = homes("other")
    found(other, NodeId("mbp"), Clock(), {})
    kept = (other.keys / "node.key").read_bytes()
    with pytest.raises(HomeError, match="keys of another node") as refused:
        put_back(other, tmp_path / "b", force=True)
    assert "another home" in refused.value.hint
    assert (other.keys / "node.key").read_bytes() == kept
    assert not list(other.root.glob("before-restore-*"))


def test_a_journal_that_cannot_be_read_is_replaced_by_force_alone(home: Home, tmp_path: Path) -> None:
    put_agent(home, "bob")
    make(home, tmp_path / "b")
    for file in home.root.glob("journal.db*"):
        file.write_bytes(b"x" * 5000)
    with pytest.raises(HomeError, match="already"):
        put_back(home, tmp_path / "b")
    put_back(home, tmp_path / "b", force=True)
    assert agents(home) == ["bob"]


def vouch(contents: dict[str, bytes]) -> None:
    """A manifest that says of another node what is in it."""
    manifest = msgspec.json.decode(contents[NAME])
    contents[NAME] = msgspec.json.encode({**manifest, "node": "mbp"})


def date_ahead(contents: dict[str, bytes]) -> None:
    manifest = msgspec.json.decode(contents[NAME])
    contents[NAME] = msgspec.json.encode({**manifest, "seq": manifest["seq"] + 1})


@pytest.mark.parametrize("change", [vouch, date_ahead], ids=lambda change: change.__name__)
def test_a_manifest_of_another_journal(
    home: Home, homes: Callable[[str], Home], tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    make(home, tmp_path / "b")
    with pytest.raises(BackupFailed, match="not of this journal"):
        put_back(homes("other"), repacked(tmp_path / "b", change))


IN_A_PROCESS = """
import os, resource, signal, sys
from pathlib import Path
from gateway.backup.making import make_backup
from gateway.backup.restoring import restore
from gateway.home import Home
from outbox.errors import MeshError

what, root, file, how = sys.argv[1:]
if how.isdigit():
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(how), int(how)))

def progress(done, total):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

home = Home(Path(root), Path(root).parent / "run")
try:
    if what == "backup":
        make_backup(home, Path(file), with_keys=True, with_blobs=True, now_ms=5, progress=progress)
    else:
        restore(
            home, Path(file), force=False, ask=True, with_blobs=True, environ={}, now_ms=9, progress=progress
        )
except MeshError as error:
    print(error.code, error)
"""


def elsewhere(what: str, home: Home, file: Path, how: str) -> "subprocess.CompletedProcess[str]":
    """In a process that is killed at its first progress, or can write so many bytes a file."""
    return subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, what, str(home.root), str(file), how],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_backup_that_is_killed_leaves_nothing_that_could_be_taken_for_one(
    home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "b"
    assert elsewhere("backup", home, target, "kill").returncode == -9
    assert not target.exists()
    (left,) = tmp_path.glob(".*")
    assert left.stat().st_mode & 0o777 == 0o700, "there are keys in it"
    make(home, target)
    assert not list(tmp_path.glob(".*")), "the next one takes it away"


def test_a_restore_that_is_killed_is_repeated(
    home: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    put_agent(home, "bob")
    make(home, tmp_path / "b")
    other = homes("other")
    assert elsewhere("restore", other, tmp_path / "b", "kill").returncode == -9
    assert not other.journal.exists()
    put_back(other, tmp_path / "b")
    assert agents(other) == ["bob"]
    assert not (other.root / ".restoring").exists()


@pytest.mark.parametrize("limit", [2_000, 150_000, 8_405_000])
def test_a_disk_without_room_leaves_no_half_of_a_backup(home: Home, tmp_path: Path, limit: int) -> None:
    done = elsewhere("backup", home, tmp_path / "b", str(limit))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in {"backup_failed", "storage_full", "storage_failed"}, done.stdout
    assert not list(tmp_path.glob("b")) + list(tmp_path.glob(".*"))


@pytest.mark.parametrize("limit", [2_000, 150_000, 5_000_000])
def test_a_disk_without_room_leaves_no_half_of_a_home(
    home: Home, homes: Callable[[str], Home], tmp_path: Path, limit: int
) -> None:
    make(home, tmp_path / "b")
    other = homes("other")
    done = elsewhere("restore", other, tmp_path / "b", str(limit))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in {"backup_failed", "storage_full", "storage_failed"}, done.stdout
    assert "gateway backup made" not in done.stdout
    assert not other.journal.exists()
    assert not (other.root / ".restoring").exists()
    put_back(other, tmp_path / "b")


def test_two_backups_to_one_file_do_not_mix(home: Home, tmp_path: Path) -> None:
    refused: list[str] = []

    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(BackupFailed, match="another backup") as second:
            make(home, tmp_path / "b")
        refused.append(second.value.hint)

    make_backup(home, tmp_path / "b", with_keys=True, with_blobs=True, now_ms=5, progress=meanwhile)
    assert refused
    put_back(home, tmp_path / "b", force=True)


def test_a_link_in_the_place_of_the_drafts_is_not_followed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".b.partial").symlink_to(tmp_path / "mine")
    with pytest.raises(BackupFailed):
        make(home, tmp_path / "b")
    assert not list((tmp_path / "mine").iterdir())
