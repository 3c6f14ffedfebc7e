"""A copy of the packages, with one planted bug or none, and what simulation and harness see of it."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
MUTATIONS = sorted((Path(__file__).parent / "mutations").glob("*.toml"))
PACKAGES = ("outbox", "auth", "stateroom", "spark", "gateway")
_COMMAND = "import sys; from gateway.cli import main; sys.exit(main())"


class Mutation(NamedTuple):
    file: str
    old: str
    new: str
    seeds: int
    """It must be seen within so many worlds."""
    runs: int = 0
    """It must also be seen within so many runs on real processes, from seed 1."""
    run_faults: str = "crash"
    """Classes of these runs."""
    faults: str = ""
    """Classes that are on, where the seed's would not show it."""
    first: int = 0
    """The first seed."""
    nodes: int = 0
    minutes: int = 0
    messages: int = 0
    """Of each world; 0: as the seed says."""

    def options(self) -> tuple[str, ...]:
        """Of the command, beside the seeds."""
        numbers = {"nodes": self.nodes, "minutes": self.minutes, "messages": self.messages}
        named = [(f"--{name}", str(number)) for name, number in numbers.items() if number]
        options = (("--from", str(self.first)), *named, ("--faults", self.faults))
        return tuple(word for option in options if option[1] for word in option)


def read_mutation(path: Path) -> Mutation:
    return Mutation(**tomllib.loads(path.read_text()))


def copy(folder: Path) -> None:
    """Copy the packages into an empty folder."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))


def plant(mutation: Mutation, folder: Path) -> None:
    """Copy the packages and break them there."""
    copy(folder)
    target = folder / mutation.file
    text = target.read_text()
    assert text.count(mutation.old) == 1, f"{mutation.file} has changed: renew the mutation"
    target.write_text(text.replace(mutation.old, mutation.new))


def first_failing_seed(folder: Path, seeds: int, options: tuple[str, ...] = ("--from", "0")) -> int | None:
    """The first world in which the copy breaks a promise."""
    found = _harness(folder, "sim", "--seeds", str(seeds), "--stop", *options)
    failed = found["failed"]
    return failed[0] if failed else None


def broken_promises(folder: Path, seed: int, faults: str) -> list[Any]:
    """What breaks when gateways of the copy die at crash points, or meet other faults."""
    flags = ("--nodes", "3", "--duration", "30", "--faults", faults, "--seed", str(seed))
    found = _harness(folder, "run", *flags)
    return found["faults"]


def _harness(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-c", _COMMAND, "harness", *arguments, "--json"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
