"""A journal that cannot be read: every command that needs it fails and says why."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.checks import Level, examine
from gateway.clock import Clock
from gateway.founding import found
from gateway.home import Home
from outbox.ids import NodeId


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Home:
    root = tmp_path_factory.mktemp("broken")
    home = Home(root / "vps", root / "run")
    found(home, NodeId("vps"), Clock(), {})
    for file in home.root.glob("journal.db*"):
        file.unlink()
    home.journal.write_bytes(b"not a database, and long enough to be looked at as one" * 100)
    return home


@pytest.mark.parametrize(
    "words",
    [
        ("outbox", "verify"),
        ("outbox", "export"),
        ("outbox", "export", "--raw"),
        ("collect", "--lake", "LAKE"),
        ("backup", "FILE"),
        ("blob", "verify"),
        ("run",),
    ],
    ids=" ".join,
)
def test_it_fails_and_says_why(broken: Home, words: tuple[str, ...], tmp_path: Path) -> None:
    places = {"LAKE": str(tmp_path / "lake"), "FILE": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "--home", str(broken.root), *(places.get(w, w) for w in words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "gateway: " in done.stderr
    assert "not a database" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "file").exists()


def test_a_lock_that_is_no_file_is_a_finding_and_stops_no_other(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", tmp_path / "run")
    found(home, NodeId("vps"), Clock(), {})
    home.lock.unlink()
    home.lock.mkdir()
    findings = {finding.check: finding for finding in examine(home)}
    assert findings["lock"].level is Level.FAIL
    assert "cannot read" in findings["lock"].what
    assert findings["home"].level is Level.OK
