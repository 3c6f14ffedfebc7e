"""Fails unless the tests run every branch of every core; ``make coverage`` uses it after a run.

Shells are covered by tests of what they do, and a figure for them would say little.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def cores() -> list[str]:
    """The files of the modules that the contract ``cores`` names."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(entry for entry in config["tool"]["importlinter"]["contracts"] if entry["id"] == "cores")
    stems = [name.replace(".", "/") for name in contract["source_modules"]]
    return [f"{stem}/__init__.py" if (ROOT / stem).is_dir() else f"{stem}.py" for stem in stems]


if __name__ == "__main__":
    report = [sys.executable, "-m", "coverage", "report", "--fail-under=100", "--skip-covered"]
    sys.exit(subprocess.run([*report, f"--include={','.join(cores())}"], cwd=ROOT, check=False).returncode)
