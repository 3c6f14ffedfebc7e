"""What ``make`` does on a new machine: it finds a Python that really starts, or says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sharing import SINGLE, WHOLE, share_of

ROOT = Path(__file__).parents[1]
FIND = ROOT / "scripts" / "find-python"
SETUP = ROOT / "scripts" / "setup"


def run(script: Path, *arguments: str, path: Path, python: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script with nothing on PATH but one folder and the system's own tools."""
    environment = {"PATH": f"{path}{os.pathsep}/nowhere", "PYTHON": python}
    command = ["/bin/sh", str(script), *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for PATH; the scripts start each other with ``sh``."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


REAL = f'exec "{sys.executable}" "$@"'
BROKEN_SHIM = 'echo "pyenv: python3.13: command not found" >&2; exit 127'


def test_a_shim_that_does_not_start_is_passed_over(folder: Path) -> None:
    install(folder, "python3.13", BROKEN_SHIM)
    install(folder, "python3.11", REAL)
    found = run(FIND, path=folder)
    assert found.returncode == 0
    assert Path(found.stdout.strip()).exists()
    assert found.stderr == ""


def test_a_python_that_is_too_old_is_passed_over(folder: Path) -> None:
    install(folder, "python3.12", "exit 1")  # what an old interpreter answers to the question
    install(folder, "python3", REAL)
    assert run(FIND, path=folder).returncode == 0


def test_without_any_python_it_says_what_to_do(folder: Path) -> None:
    found = run(FIND, path=folder)
    assert found.returncode == 1
    assert found.stdout == ""
    assert "make PYTHON=" in found.stderr


def test_a_python_that_was_named_is_the_only_candidate(folder: Path) -> None:
    install(folder, "python3.11", REAL)
    found = run(FIND, path=folder, python="/nowhere/python")
    assert found.returncode == 1
    assert "/nowhere/python" in found.stderr


def test_a_python_without_ensurepip_is_told_about_the_package(folder: Path, tmp_path: Path) -> None:
    """Debian splits venv off; its python3 starts, and cannot make an environment."""
    install(folder, "python3", f'case "$*" in *ensurepip*) exit 1 ;; esac; {REAL}')
    wrapped = folder / "python3"
    install(folder, "python3.11", f'case "$*" in *ensurepip*) exit 1 ;; esac\necho "{wrapped}"')
    made = run(SETUP, str(tmp_path / "venv"), path=folder)
    assert made.returncode == 1
    assert "apt install python3-venv" in made.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((), "-n 2"),
        (("TEST_JOBS=4",), "-n 4"),
        (("TEST_ARGS=tests/outbox -k chain",), "tests/outbox -k chain"),
    ],
)
def test_all_of_the_suite_is_shared_by_processes_and_a_part_of_it_runs_in_one(
    asked: tuple[str, ...], words: str
) -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", "test", *asked],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # without what a make around this one was asked for
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shown.stdout.splitlines()[-1] == f".venv/bin/pytest {words}"


@pytest.mark.parametrize(
    ("test", "share"),
    [
        ("tests/outbox/test_chain.py::test_it[a::b]", "tests/outbox/test_chain.py"),
        ("tests/spark/test_sla.py::test_it", "tests/spark/"),
        ("tests/mesh/test_links.py::test_it[x]", "tests/mesh/test_links.py::test_it[x]"),
    ],
)
def test_a_share_is_a_file_or_all_that_uses_spark_or_one_long_test(test: str, share: str) -> None:
    assert share_of(test) == share


def test_every_folder_that_is_shared_in_a_way_of_its_own_is_there() -> None:
    assert [folder for folder in (*WHOLE, *SINGLE) if not (ROOT / folder).is_dir()] == []
