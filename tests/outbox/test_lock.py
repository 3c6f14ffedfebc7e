import fcntl
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from outbox.errors import HomeLocked, StorageFailed
from outbox.limits import LOCK_WAIT_S
from outbox.lock import HomeLock

HOLDER = """
import sys, signal
from pathlib import Path
from outbox.lock import HomeLock
lock = HomeLock(Path(sys.argv[1]))
print("locked", flush=True)
signal.pause()
"""


def test_a_home_is_locked_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with HomeLock(path):
        with pytest.raises(HomeLocked, match=f"process {os.getpid()}") as caught:
            HomeLock(path)
        assert "stop the other gateway" in caught.value.hint
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    HomeLock(path).close()


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    lock = HomeLock(tmp_path / "lock")
    lock.close()
    lock.close()
    HomeLock(tmp_path / "lock").close()


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(HomeLocked, match=f"process {holder.pid}"):
            HomeLock(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=60)
    HomeLock(path).close()


SHARER = """
import os, subprocess, sys
from pathlib import Path
from outbox.lock import HomeLock
lock = HomeLock(Path(sys.argv[1]))
subprocess.Popen(["cat"], pass_fds=(lock.fileno(),), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os._exit(0)
"""


def test_a_home_is_free_when_nobody_shares_its_lock_any_more(tmp_path: Path) -> None:
    """Its holder has died; what it started goes on until its input ends, and is waited for."""
    path = tmp_path / "lock"
    theirs, ours = os.pipe()
    subprocess.run([sys.executable, "-c", SHARER, str(path)], check=True, timeout=60, stdin=theirs)
    os.close(theirs)
    with path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with ThreadPoolExecutor(1) as waiting:
        lock = waiting.submit(HomeLock, path)
        os.close(ours)
        lock.result(LOCK_WAIT_S).close()


def test_who_lives_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.lock.LOCK_WAIT_S", 3600.0)  # far above what a test may take
    path = tmp_path / "lock"
    with HomeLock(path):
        with pytest.raises(HomeLocked):
            HomeLock(path)
        path.write_text("nobody\n")
        with pytest.raises(HomeLocked, match="nobody"):
            HomeLock(path)


def test_a_file_that_cannot_be_opened_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot open") as caught:
        HomeLock(tmp_path / "nowhere" / "lock")
    assert caught.value.hint


def test_the_lock_needs_no_room(small_disk: Path) -> None:
    """A gateway starts on a full disk and is read. That the home is held is known there, if not by whom."""
    path = small_disk / "lock"
    with (small_disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        for _ in range(1000):
            file.write(bytes(1 << 20))
    with HomeLock(path), pytest.raises(HomeLocked):
        HomeLock(path)
