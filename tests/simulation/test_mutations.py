"""Planted bugs: a simulation that does not see them would not see real ones."""

import ast
from pathlib import Path

import pytest

from tests.simulation.mutant import (
    MUTATIONS,
    broken_promises,
    copy,
    first_failing_seed,
    plant,
    read_mutation,
)

SAMPLE = (
    "ack-before-append",
    "cursor-without-ledger",
    "effects-before-commit",
    "lost-wake-up-after-reconnect",
    "rows-behind-lost-at-a-start",
)
"""Seen within seconds; the others are `long`."""

REAL = [path for path in MUTATIONS if read_mutation(path).runs]
"""Those that need a death between a commit and its answer, or a restore, and are planted into real processes
as well."""


def test_there_are_enough_of_them_and_each_says_what_is_wrong() -> None:
    assert len(MUTATIONS) >= 20
    assert all(path.read_text().startswith("# ") for path in MUTATIONS)
    assert {*SAMPLE} <= {path.stem for path in MUTATIONS}


@pytest.mark.parametrize("path", MUTATIONS, ids=lambda path: path.stem)
def test_every_mutation_still_fits_the_code(path: Path) -> None:
    mutation = read_mutation(path)
    code = (Path(__file__).parents[2] / mutation.file).read_text()
    assert code.count(mutation.old) == 1
    assert mutation.old != mutation.new
    ast.parse(code.replace(mutation.old, mutation.new))  # what does not run is no bug


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem in SAMPLE else pytest.mark.long, id=path.stem)
        for path in MUTATIONS
    ],
)
@pytest.mark.timeout(900)
def test_the_simulation_sees_it(path: Path, tmp_path: Path) -> None:
    mutation = read_mutation(path)
    plant(mutation, tmp_path)
    assert first_failing_seed(tmp_path, mutation.seeds, mutation.options()) is not None


def _worlds() -> dict[tuple[str, ...], int]:
    """How many of each kind the bugs are looked for in."""
    worlds: dict[tuple[str, ...], int] = {}
    for mutation in map(read_mutation, MUTATIONS):
        worlds[mutation.options()] = max(worlds.get(mutation.options(), 0), mutation.seeds)
    return worlds


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "seeds"), [pytest.param(*each, id=" ".join(each[0])) for each in _worlds().items()]
)
@pytest.mark.timeout(1800)
def test_without_a_bug_the_same_worlds_are_clean(
    options: tuple[str, ...], seeds: int, tmp_path: Path
) -> None:
    """Otherwise "seen" would mean nothing."""
    copy(tmp_path)
    assert first_failing_seed(tmp_path, seeds, options) is None


def test_without_a_bug_the_first_worlds_are_clean(tmp_path: Path) -> None:
    copy(tmp_path)
    assert first_failing_seed(tmp_path, 5) is None


@pytest.mark.long
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
@pytest.mark.timeout(900)
def test_real_processes_show_it(path: Path, tmp_path: Path) -> None:
    mutation = read_mutation(path)
    plant(mutation, tmp_path)
    seeds = range(1, mutation.runs + 1)
    assert any(broken_promises(tmp_path, seed, mutation.run_faults) for seed in seeds)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_without_a_bug_real_processes_are_clean(tmp_path: Path) -> None:
    copy(tmp_path)
    runs: dict[str, int] = {}
    for mutation in map(read_mutation, REAL):
        runs[mutation.run_faults] = max(runs.get(mutation.run_faults, 0), mutation.runs)
    assert {
        (faults, seed): broken_promises(tmp_path, seed, faults)
        for faults, count in runs.items()
        for seed in range(1, count + 1)
    } == {(faults, seed): [] for faults, count in runs.items() for seed in range(1, count + 1)}
