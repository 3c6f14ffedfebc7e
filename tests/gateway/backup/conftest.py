"""Homes to make backups of."""

import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.founding import found
from gateway.home import Home, write_private
from outbox.ids import AgentId, NodeId


def quiet(done: int, total: int) -> None:
    """Progress that is in order."""
    assert 0 <= done <= total


def repacked(source: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The same archive with other contents under the same manifest."""
    with tarfile.open(source) as archive:
        contents = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]
    change(contents)
    target = source.with_name("changed")
    with tarfile.open(target, "w") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, BytesIO(content))
    return target


@pytest.fixture
def homes(tmp_path: Path) -> Callable[[str], Home]:
    def named(name: str) -> Home:
        return Home(tmp_path / name, tmp_path / "run")

    return named


@pytest.fixture
def home(homes: Callable[[str], Home]) -> Home:
    made = homes("vps")
    found(made, NodeId("vps"), Clock(), {})
    write_private(made.token(AgentId("bob")), b"secret\n")
    return made
