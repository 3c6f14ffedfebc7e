"""What ``make`` does on a new machine: it finds a Python that really starts, or says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
