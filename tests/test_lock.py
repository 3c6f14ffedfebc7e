"""The lock files answer everything that ``pyproject.toml`` asks for, and name no place to get it from."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
BUILD_LOCK = ROOT / "requirements-build.lock"
BENCH_LOCK = ROOT / "requirements-bench.lock"
OBJECTS_LOCK = ROOT / "requirements-objects.lock"
CONNECT_LOCK = ROOT / "requirements-connect.lock"
NPM_LOCK = ROOT / "tests" / "interop" / "package-lock.json"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())

_PIN = re.compile(
    r"^(\S+?)==(\S+)(?: ;.*)? \\$((?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?$)+)", re.MULTILINE
)


def pins(lock: Path) -> dict[str, str]:
    return {canonicalize_name(name): version for name, version, _ in _PIN.findall(lock.read_text())}


def asked_for() -> list[tuple[Requirement, Path]]:
    project = CONFIG["project"]
    extras = dict(project["optional-dependencies"])
    connect = extras.pop("connect")
    groups = dict(CONFIG["dependency-groups"])
    bench, objects = groups.pop("bench"), groups.pop("objects")
    texts = [
        *project["dependencies"],
        *chain(*extras.values()),
        *chain(*groups.values()),
        *CONFIG["build-system"]["requires"],
    ]
    locked = ((texts, LOCK), (bench, BENCH_LOCK), (objects, OBJECTS_LOCK), (connect, CONNECT_LOCK))
    return [(Requirement(text), lock) for asked, lock in locked for text in asked]


@pytest.mark.parametrize(("requirement", "lock"), asked_for(), ids=str)
def test_every_requirement_is_locked_to_a_release_that_satisfies_it(
    requirement: Requirement, lock: Path
) -> None:
    version = pins(lock).get(canonicalize_name(requirement.name))
    assert version is not None, "run: make lock"
    assert requirement.specifier.contains(version), "run: make lock"


@pytest.mark.parametrize(
    "lock", [LOCK, BUILD_LOCK, BENCH_LOCK, OBJECTS_LOCK, CONNECT_LOCK], ids=lambda lock: lock.name
)
def test_every_locked_package_has_hashes(lock: Path) -> None:
    named = re.findall(r"^[A-Za-z0-9].*$", lock.read_text(), re.MULTILINE)
    assert len(named) == len(_PIN.findall(lock.read_text()))


def test_what_is_locked_apart_fits_what_is_always_there() -> None:
    both = pins(CONNECT_LOCK).keys() & pins(LOCK).keys()
    assert {name: pins(CONNECT_LOCK)[name] for name in both} == {name: pins(LOCK)[name] for name in both}


def test_what_builds_is_locked_to_the_same_releases() -> None:
    assert pins(BUILD_LOCK).items() <= pins(LOCK).items()
    assert {canonicalize_name(Requirement(text).name) for text in CONFIG["build-system"]["requires"]} <= pins(
        BUILD_LOCK
    ).keys()


@pytest.mark.parametrize(
    "lock", [LOCK, BUILD_LOCK, BENCH_LOCK, CONNECT_LOCK, NPM_LOCK], ids=lambda lock: lock.name
)
def test_no_lock_file_names_an_index_or_a_place_on_a_machine(lock: Path) -> None:
    found = re.findall(r'index-url|find-links|"resolved"|file:|registry\.\S+', lock.read_text())
    assert not found
