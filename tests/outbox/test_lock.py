import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from outbox.errors import HomeLocked
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
        holder.wait(timeout=10)
    HomeLock(path).close()
