import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from auth.errors import KeyFileDamaged, KeyFileUnsafe
from auth.keyring import Keyring
from outbox.errors import StorageFailed


def entropy() -> Callable[[int], bytes]:
    calls = iter(range(1, 100))
    return lambda size: bytes([next(calls)]) * size


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "home" / "keys"


def test_a_key_is_made_once_and_found_again(keys: Path) -> None:
    source = entropy()
    made = Keyring(keys).node_key(source)
    assert Keyring(keys).node_key(source).public == made.public
    nonce_key = Keyring(keys).nonce_key(source)
    assert (len(nonce_key), Keyring(keys).nonce_key(source)) == (32, nonce_key)


def test_a_lost_node_key_is_not_made_anew_for_a_node_that_has_signed(keys: Path) -> None:
    ring = Keyring(keys)
    made = ring.node_key(entropy())
    assert ring.kept_node_key().public == made.public
    (keys / "node.key").unlink()
    with pytest.raises(KeyFileDamaged, match="missing"):
        ring.kept_node_key()
    assert not (keys / "node.key").exists()


def test_only_the_founder_has_a_root_key(keys: Path) -> None:
    ring = Keyring(keys)
    assert ring.root_key() is None
    ring.node_key(entropy())
    assert ring.root_key() is None
    made = ring.make_root_key(entropy())
    found = ring.root_key()
    assert found is not None
    assert found.public == made.public


def test_nobody_else_may_read(keys: Path) -> None:
    old = os.umask(0)
    try:
        Keyring(keys).node_key(entropy())
    finally:
        os.umask(old)
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in keys.iterdir()] == [0o600]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_is_open_to_others_is_refused(mode: int, keys: Path) -> None:
    Keyring(keys).node_key(entropy())
    (keys / "node.key").chmod(mode)
    with pytest.raises(KeyFileUnsafe) as caught:
        Keyring(keys).node_key(entropy())
    assert "chmod 600" in caught.value.hint


def test_a_directory_that_is_open_to_others_is_refused(keys: Path) -> None:
    Keyring(keys).node_key(entropy())
    keys.chmod(0o755)
    with pytest.raises(KeyFileUnsafe):
        Keyring(keys).node_key(entropy())
    with pytest.raises(KeyFileUnsafe):
        Keyring(keys).make_root_key(entropy())


@pytest.mark.parametrize(
    "content", [b"", b"x", b"gateway-mesh node v1 AAAA\n", b"gateway-mesh nonce v1 " + b"A" * 43, b"\xff"]
)
def test_a_damaged_file_is_never_replaced(content: bytes, keys: Path) -> None:
    Keyring(keys).node_key(entropy())
    (keys / "node.key").write_bytes(content)
    with pytest.raises(KeyFileDamaged):
        Keyring(keys).node_key(entropy())
    assert (keys / "node.key").read_bytes() == content


def test_one_key_does_not_pass_as_another(keys: Path) -> None:
    Keyring(keys).node_key(entropy())
    (keys / "root.key").write_bytes((keys / "node.key").read_bytes())
    (keys / "root.key").chmod(0o600)
    with pytest.raises(KeyFileDamaged):
        Keyring(keys).root_key()


def test_a_link_is_not_followed(keys: Path, tmp_path: Path) -> None:
    Keyring(keys).node_key(entropy())
    (keys / "node.key").rename(tmp_path / "elsewhere")
    (keys / "node.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed):
        Keyring(keys).node_key(entropy())


def test_a_draft_of_a_killed_start_does_not_matter(keys: Path) -> None:
    keys.mkdir(parents=True, mode=0o700)
    (keys / ".node.key.draft").write_bytes(b"half")
    Keyring(keys).node_key(entropy())
    assert [path.name for path in keys.iterdir()] == ["node.key"]


def test_the_key_is_on_disk_before_it_is_used(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append((keys / "node.key").exists()), real(fd))[1])
    Keyring(keys).node_key(entropy())
    # The file before its name, the directory after it.
    assert synced[0] is False
    assert synced[1] is True


def test_a_disk_that_fails_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"")
    with pytest.raises((StorageFailed, KeyFileUnsafe)):
        Keyring(tmp_path / "keys").node_key(entropy())


def test_a_key_that_cannot_be_read_is_told_apart_from_one_that_is_missing(keys: Path) -> None:
    """A directory in its place, or a disk that fails: no new key is made."""
    keys.mkdir(mode=0o700, parents=True)
    (keys / "node.key").mkdir(mode=0o600)
    with pytest.raises(StorageFailed, match="cannot read") as caught:
        Keyring(keys).node_key(bytes)
    assert caught.value.hint
