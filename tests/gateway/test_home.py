import stat
from functools import partial
from pathlib import Path

import msgspec
import pytest

from gateway.errors import HomeError
from gateway.home import (
    Home,
    private_directory,
    read_private,
    read_record,
    read_text,
    write_private,
)
from outbox.ids import AgentId


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.of({"GATEWAY_HOME": str(tmp_path / "node"), "XDG_RUNTIME_DIR": str(tmp_path)})


def test_the_environment_names_the_home(home: Home, tmp_path: Path) -> None:
    assert home.root == tmp_path / "node"
    assert home.token(AgentId("jen")) == tmp_path / "node" / "agents" / "jen.token"
    assert home.log == tmp_path / "node" / "log" / "gateway.jsonl"


def test_without_a_name_it_is_the_users_own(tmp_path: Path) -> None:
    home = Home.of({"TMPDIR": str(tmp_path)})
    assert home.root.is_absolute()
    assert "gateway-mesh" in home.root.parts
    assert home.runtime.parent == tmp_path


def test_a_new_home_is_closed_to_others_and_making_it_again_is_fine(home: Home) -> None:
    home.create()
    home.create()
    home.check()
    assert {mode(path) for path in (home.root, home.keys, home.agents, home.log.parent)} == {0o700}


def test_a_home_that_is_not_there_says_how_to_make_one(home: Home) -> None:
    with pytest.raises(HomeError) as missing:
        home.check()
    assert "gateway init" in missing.value.hint


def test_a_home_whose_journal_was_lost_is_told_from_one_that_was_never_made(home: Home) -> None:
    home.create()
    with pytest.raises(HomeError, match="no home of a node"):
        home.need_journal()
    (home.keys / "node.key").touch()
    with pytest.raises(HomeError, match="no journal") as lost:
        home.need_journal()
    assert "gateway restore" in lost.value.hint
    home.journal.touch()
    home.need_journal()


class Noted(msgspec.Struct):
    words: list[str]


def test_a_file_is_read_as_what_it_holds(tmp_path: Path) -> None:
    write_private(tmp_path / "note", b' {"words": ["a", "b"]}\n')
    assert read_text(tmp_path / "note") == '{"words": ["a", "b"]}'
    assert read_record(tmp_path / "note", Noted) == Noted(["a", "b"])


@pytest.mark.parametrize("content", [b"\xff\xfe", b'{"words": ["\xc3"]}', b"\x80" * 5000, b"\xc3\xbc"])
def test_a_file_that_is_no_text_is_damaged(tmp_path: Path, content: bytes) -> None:
    write_private(tmp_path / "note", content)
    for read in (read_text, partial(read_record, record=Noted)):
        with pytest.raises(HomeError, match="note is damaged"):
            read(tmp_path / "note")


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b'{"words": [1]}', b'{"words": [', b"[" * 5000, b"x"]
)
def test_a_file_that_is_no_such_record_is_damaged(tmp_path: Path, content: bytes) -> None:
    write_private(tmp_path / "note", content)
    with pytest.raises(HomeError, match="note is damaged"):
        read_record(tmp_path / "note", Noted)


def test_a_home_open_to_others_is_refused_with_the_cure(home: Home) -> None:
    home.create()
    home.keys.chmod(0o755)
    with pytest.raises(HomeError, match="open to other users") as refused:
        home.check()
    assert refused.value.hint == f"chmod 700 {home.keys}"
    with pytest.raises(HomeError):
        home.create()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(HomeError, match="link"):
        private_directory(tmp_path / "link")


def test_a_directory_cannot_be_made_inside_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(HomeError):
        private_directory(tmp_path / "file" / "node")


def test_a_private_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "jen.token"
    write_private(target, b"one")
    with target.open("rb") as before:
        write_private(target, b"two")
        assert before.read() == b"one"
    assert read_private(target) == b"two"
    assert mode(target) == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "jen.token"
    target.mkdir()
    with pytest.raises(HomeError):
        write_private(target, b"two")
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(HomeError):
        write_private(tmp_path / "nowhere" / "x", b"")


def test_a_file_open_to_others_or_missing_is_not_read(tmp_path: Path) -> None:
    target = tmp_path / "jen.token"
    with pytest.raises(HomeError):
        read_private(target)
    write_private(target, b"one")
    target.chmod(0o640)
    with pytest.raises(HomeError) as refused:
        read_private(target)
    assert refused.value.hint == f"chmod 600 {target}"


def test_two_homes_have_two_short_sockets(tmp_path: Path) -> None:
    long = "x" * 200
    paths = {
        Home.of({"GATEWAY_HOME": f"/{long}/{name}", "XDG_RUNTIME_DIR": "/run/user/1000"}).socket
        for name in "ab"
    }
    assert len(paths) == 2
    assert all(len(str(path)) < 60 for path in paths)
