import os
import signal
import subprocess
import sys

import pytest

from gateway.crashpoint import VARIABLE, CrashPoint, fuse
from gateway.errors import ConfigError

PASSES_ALL_TWICE = """
from gateway.crashpoint import CrashPoint, crashpoint
for turn in range(2):
    for point in CrashPoint:
        print(turn, point, flush=True)
        crashpoint(point)
"""


def run(setting: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PASSES_ALL_TWICE]
    return subprocess.run(
        command, env=os.environ | {VARIABLE: setting}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("setting", "last_line"),
    [
        ("engine_after_commit", "0 engine_after_commit"),
        ("collect_after_rename:2", "1 collect_after_rename"),
    ],
)
def test_an_armed_point_kills_at_its_passing(setting: str, last_line: str) -> None:
    done = run(setting)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.splitlines()[-1] == last_line


@pytest.mark.parametrize("setting", ["", "engine_after_commit:3"])
def test_an_unarmed_or_never_reached_passing_does_nothing(setting: str) -> None:
    done = run(setting)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2 * len(CrashPoint)


def test_a_typo_stops_the_process_at_start() -> None:
    done = run("engine_after_comit")
    assert done.returncode == 1
    assert "ConfigError" in done.stderr


@pytest.mark.parametrize(
    "setting", ["x", "engine_after_commit:", "engine_after_commit:0", "engine_after_commit:-1"]
)
def test_what_names_no_passing_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError):
        fuse(setting)


@pytest.mark.parametrize("point", CrashPoint)
def test_every_point_can_be_armed(point: CrashPoint) -> None:
    armed = fuse(f"{point}:2")
    assert armed is not None
    assert [armed.burns_out(point), armed.burns_out(point), armed.burns_out(point)] == [False, True, False]
