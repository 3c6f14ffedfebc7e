"""Homes to make backups of."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.clock import Clock
from gateway.founding import found
from gateway.home import Home, write_private
from outbox.ids import AgentId, NodeId


def quiet(done: int, total: int) -> None:
    """Progress that is in order."""
    assert 0 <= done <= total


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
