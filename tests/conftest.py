"""What tests of several packages need."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A machine that others use too may stop any example for longer than Hypothesis thinks is fine.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the suite as it is best shared, unless ``--dist`` says another way."""
    if config.getoption("dist") != "load":
        return None
    from tests.sharing import Shares

    return Shares(config, log)


@pytest.fixture
def mount_small() -> Iterator[Callable[[Path, int], Path]]:
    """Make a directory a file system of its own, of so many KiB of memory; a test is skipped where that is
    forbidden."""
    mounted: list[Path] = []

    def mount(place: Path, kib: int) -> Path:
        place.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0700", "tmpfs", str(place)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip("mounting needs root")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=True, timeout=60)


@pytest.fixture
def small_disk(mount_small: Callable[[Path, int], Path], tmp_path: Path) -> Path:
    """Sixteen MiB of memory as a file system."""
    return mount_small(tmp_path / "disk", 16 * 1024)
